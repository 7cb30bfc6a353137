"""Pushes over HTTP: pings of content systems by XML-RPC, the service of the paper, and WebSub callbacks."""

from __future__ import annotations

from fastapi import APIRouter

from tidings.service import Tidings


def router_for(tidings: Tidings) -> APIRouter:
    """The endpoints through which others tell us that something is new."""
    return APIRouter()
