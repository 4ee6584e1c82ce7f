"""Network guard: state-changing requests of pages are blocked before they leave the browser, and recorded."""

from waygraph.pipeline.browser.guard.advice import STAND_IN, advise_rule, advise_stand_ins, suggest_rule
from waygraph.pipeline.browser.guard.network_guard import (
    DocumentPolicy,
    HeldNavigation,
    NetworkGuard,
    StoppedRequests,
    guard_script,
)
from waygraph.pipeline.browser.guard.outgoing import SAFE_METHODS, OutgoingRequest, websocket_message
from waygraph.pipeline.browser.guard.request_policy import (
    NO_STATE_CHANGING_URLS,
    GuardMode,
    RequestPolicy,
    StateChangingUrls,
)
from waygraph.pipeline.browser.guard.rules import GuardRules

__all__ = [
    "NO_STATE_CHANGING_URLS",
    "SAFE_METHODS",
    "STAND_IN",
    "DocumentPolicy",
    "GuardMode",
    "GuardRules",
    "HeldNavigation",
    "NetworkGuard",
    "OutgoingRequest",
    "RequestPolicy",
    "StateChangingUrls",
    "StoppedRequests",
    "advise_rule",
    "advise_stand_ins",
    "guard_script",
    "suggest_rule",
    "websocket_message",
]
