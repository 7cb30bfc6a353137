"""The data source `tidings`: a store's tables as DataFrames, and DataFrames published into its journal."""
