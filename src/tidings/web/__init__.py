"""Asking others on the web with care: which addresses one may lead to, why there is no answer, when to come again."""
