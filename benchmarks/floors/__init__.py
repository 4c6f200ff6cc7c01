"""The floors: for each benchmark the same work without trioflow, as a competent person would write it."""
