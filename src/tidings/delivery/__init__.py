"""Delivery of notifications to webhooks, mail, chat and Kafka topics, with retries and dead letters."""
