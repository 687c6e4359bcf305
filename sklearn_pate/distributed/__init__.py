"""Rows that stay where they are: on clusters, and in hospitals."""

from sklearn_pate._teachers._shards import shard_of
from sklearn_pate.distributed._cast_votes import cast_votes
from sklearn_pate.distributed._study import Collector, Site, Study

__all__ = ["Collector", "Site", "Study", "cast_votes", "shard_of"]
