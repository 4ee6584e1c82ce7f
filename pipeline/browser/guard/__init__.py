"""Which requests may leave a page? State-changing ones are stopped on the wire, and told."""

from pipeline.browser.guard.advice import advice
from pipeline.browser.guard.judge import NOTHING_ACTS, ActsOnGet, GuardMode, Judge
from pipeline.browser.guard.reads import SAFE_METHODS, Sent
from pipeline.browser.guard.rules import GuardRules
from pipeline.browser.guard.watch import DocumentPolicy, HeldNavigation, NetworkGuard, Stopped, guard_script

__all__ = [
    "NOTHING_ACTS",
    "SAFE_METHODS",
    "ActsOnGet",
    "DocumentPolicy",
    "GuardMode",
    "GuardRules",
    "HeldNavigation",
    "Judge",
    "NetworkGuard",
    "Sent",
    "Stopped",
    "advice",
    "guard_script",
]
