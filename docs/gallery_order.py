"""Order of the gallery."""

from sphinx_gallery.sorting import FileNameSortKey

ORDER = (
    "plot_first_fit",
    "plot_privacy_report",
    "plot_private_metrics",
    "plot_groups",
    "plot_hospital_stays",
    "plot_teachers_vote",
    "plot_privacy_utility",
    "plot_answer_cost",
    "plot_pipeline_and_grid_search",
    "plot_private_search",
    "plot_hand_over",
    "plot_five_hospitals",
    "plot_methods_of_parties",
    "plot_texts",
    "plot_from_the_papers",
    "plot_active_queries",
    "plot_number_of_teachers",
)


class GalleryOrder(FileNameSortKey):
    """Order of ``ORDER``, followed by the scripts that are not run."""

    def __call__(self, filename):
        """Compute the sorting key of a script: position and name."""
        name = filename.removesuffix(".py")
        place = ORDER.index(name) if name in ORDER else len(ORDER)
        return place, name
