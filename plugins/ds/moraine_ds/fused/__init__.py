"""From SLC samples to linked phases and their quality, without storing coherence."""

BATCH_SIZE = 1000
"""Points whose coherence a GPU holds at once: for 92 images 34 MB, which its cache has room for."""
