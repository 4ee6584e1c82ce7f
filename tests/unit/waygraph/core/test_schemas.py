"""Answers that clients of earlier versions accept."""

from waygraph.core.schemas import ActionModel, StepModel

CLICK = ActionModel(kind="click", role="link", name="Forum")
STEP = StepModel(action=CLICK, expected_url="http://site/forum", expected_node_id="f", cost_ms=1.0)


def test_a_step_without_openers_is_written_without_the_field():
    assert "openers" not in STEP.model_dump_json()


def test_openers_are_read_back():
    step = STEP.model_copy(update={"openers": [ActionModel(kind="click", role="button", name="Menu")]})
    assert StepModel.model_validate_json(step.model_dump_json()) == step
