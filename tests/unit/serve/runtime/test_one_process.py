"""Settings of the service without Ray; `tests/integration/test_service.py` runs it."""

import pytest

from waygraph.cli.options import load_settings
from waygraph.core.errors import InvalidInput


@pytest.mark.parametrize("further", [{"replicas": 2}, {"replicas_max": 3}, {"encoder_replicas": 1}], ids=str)
def test_one_process_refuses_settings_of_further_ones(further):
    with pytest.raises(InvalidInput, match="Ray Serve"):
        load_settings({"serve": {"local": True, **further}})
    assert load_settings({"serve": further}).serve.local is False


def test_one_process_can_be_chosen_by_the_environment(monkeypatch):
    monkeypatch.setenv("WAYGRAPH_SERVE__LOCAL", "true")
    assert load_settings({"serve": {"local": None}}).serve.local
