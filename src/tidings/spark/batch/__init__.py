"""The batch job: files of publications against a file of subscriptions."""
