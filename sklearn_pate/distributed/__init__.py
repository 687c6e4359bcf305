"""Teachers trained where their rows are stored: on clusters, and in hospitals."""

from sklearn_pate._teachers._shards import shard_of
from sklearn_pate.distributed._cast_votes import cast_votes

__all__ = ["cast_votes", "shard_of"]
