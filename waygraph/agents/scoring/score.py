"""Scoring of a task: its evaluators over its final state, in a dialect."""

from __future__ import annotations

from dataclasses import dataclass

from waygraph.agents.models.chat import ChatModel
from waygraph.agents.scoring.answer_text import clean_answer
from waygraph.agents.scoring.checks import ScoringNeed, TaskCheck, TaskScore, combine_checks, evidence
from waygraph.agents.scoring.dialects import ScoringDialect
from waygraph.agents.scoring.final_state import FinalState, FindingProblem, PageFinding, TargetKey
from waygraph.agents.scoring.judge import AnswerJudge
from waygraph.agents.scoring.text_checks import (
    TextSubject,
    check_equal,
    check_fuzzy,
    check_includes,
    check_unachievable,
)
from waygraph.agents.scoring.url_match import is_url_match
from waygraph.agents.scoring.web_judge import JudgedTrajectory, judge_task
from waygraph.agents.tasks.formats import WEB_JUDGE
from waygraph.agents.tasks.task import EvaluatorKind, PageTarget, Task, TaskEvaluation

#: Rank among alternatives of one that could not be checked: only a full score is certainly as good.
_UNDECIDED_RANK = 1 - 1e-9


async def score_task(
    task: Task,
    state: FinalState,
    dialect: ScoringDialect,
    judge_model: ChatModel | None = None,
    trajectory: JudgedTrajectory | None = None,
) -> TaskScore:
    """Score the final state of a task.

    Nothing is loaded and no page is asked: a page target whose value was not recorded lacks the live site, and what a
    judge decides lacks a model if there is no judge. Such checks are said to be missing, never to be 0.

    Parameters
    ----------
    task
        The task.
    state
        The state in which a run left it.
    dialect
        The dialect.
    judge_model
        What compares texts by their meaning, and looks at screenshots; None: such checks are not made.
    trajectory
        What the agent saw and did, for WebJudge; None: that is not known.

    Returns
    -------
    TaskScore
        Reward, success, and all checks with evidence.
    """
    if WEB_JUDGE in task.other_scorers:
        return await judge_task(task, trajectory, judge_model)
    judge = AnswerJudge(judge_model) if judge_model is not None else None
    if task.evaluation is None:
        checks = [
            TaskCheck(evaluator=None, rule=name, subject="run", need=ScoringNeed.OTHER_SCORER)
            for name in task.other_scorers
        ]
    elif task.placeholders:
        note = f"no URL for {', '.join(task.placeholders)}"
        checks = [
            TaskCheck(evaluator=kind, rule=kind.value, subject="task", need=ScoringNeed.SITE_URL, note=note)
            for kind in task.evaluation.eval_types
        ]
    else:
        checks = await _Evaluators(task.intent, task.evaluation, state, dialect, judge).checks()
    usage = judge.usage if judge is not None and judge.usage.calls else None
    return combine_checks(task.task_id, dialect.name if task.evaluation is not None else "", checks, usage)


@dataclass(frozen=True, slots=True)
class _Evaluators:
    """The evaluators of one task, over its final state."""

    intent: str
    evaluation: TaskEvaluation
    state: FinalState
    dialect: ScoringDialect
    judge: AnswerJudge | None

    async def checks(self) -> list[TaskCheck]:
        checks = []
        for kind in self.evaluation.eval_types:
            match kind:
                case EvaluatorKind.STRING_MATCH:
                    checks += await self._answer_checks()
                case EvaluatorKind.URL_MATCH:
                    checks.append(self._url_check())
                case EvaluatorKind.PROGRAM_HTML:
                    for number, target in enumerate(self.evaluation.program_html):
                        checks += await self._target_checks(number, target)
        return checks

    async def _answer_checks(self) -> list[TaskCheck]:
        references = self.evaluation.reference_answers
        if references is None:  # the reader of task files refuses such tasks
            return []
        # The evaluators clean an answer before they compare it, and then again: two pairs of quotes are dropped.
        subject = TextSubject(EvaluatorKind.STRING_MATCH, "answer", clean_answer(self.state.answer))
        checks = []
        if references.exact_match is not None:
            checks.append(check_equal(subject, references.exact_match))
        if references.must_include is not None:
            checks.append(check_includes(subject, references.must_include, self.dialect))
        if references.is_unachievable:
            reason = self.evaluation.string_note or ""
            checks.append(await check_unachievable(subject, self.intent, reason, self.judge))
        elif references.fuzzy_match is not None:
            texts = _texts(references.fuzzy_match)
            checks += await check_fuzzy(subject, self.intent, texts, self.dialect, self.judge)
        return checks

    def _url_check(self) -> TaskCheck:
        references = [self.evaluation.reference_url or ""]
        if self.dialect.has_or_fields:
            references += [alternative.reference_url for alternative in self.evaluation.alternatives]
        return TaskCheck(
            evaluator=EvaluatorKind.URL_MATCH,
            rule=EvaluatorKind.URL_MATCH.value,
            subject="url",
            score=float(is_url_match(self.state.url, references, self.dialect)),
            expected=evidence(" or ".join(references)),
            found=evidence(self.state.url),
        )

    async def _target_checks(self, number: int, target: PageTarget) -> list[TaskCheck]:
        """Return the checks of a target: those of its best alternative, the first of equals."""
        options = (target, *(target.alternatives if self.dialect.has_or_fields else ()))
        best: list[TaskCheck] = []
        best_rank = -1.0
        for option, each in enumerate(options):
            checks = await self._option_checks((number, option), each)
            reward = combine_checks("", self.dialect.name, checks).reward
            rank = _UNDECIDED_RANK if reward is None else reward
            if rank > best_rank:
                best, best_rank = checks, rank
        return best

    async def _option_checks(self, key: TargetKey, target: PageTarget) -> list[TaskCheck]:
        number, option = key
        name = f"page {number}" + (f", alternative {option}" if option else "")
        contents = target.required_contents
        finding = self.state.findings.get(key)
        text = finding.text if finding is not None else None
        if finding is None or text is None:
            check = TaskCheck(
                evaluator=EvaluatorKind.PROGRAM_HTML,
                rule=EvaluatorKind.PROGRAM_HTML.value,
                subject=name,
                need=ScoringNeed.SHOP if _lacks_shop(finding) else ScoringNeed.LIVE_SITE,
                expected=evidence(contents.model_dump_json(exclude_none=True)),
                note="not recorded" if finding is None else f"{finding.problem}: {finding.detail}",
            )
            return [check]
        subject = TextSubject(EvaluatorKind.PROGRAM_HTML, name, text)
        if contents.exact_match is not None:
            checks = [check_equal(subject, contents.exact_match)]
        elif contents.must_include is not None:
            checks = [check_includes(subject, contents.must_include, self.dialect)]
        elif not self.dialect.judges_pages:
            checks = [subject.check("fuzzy_match", str(contents.fuzzy_match), need=ScoringNeed.DIALECT)]
        else:
            texts = _texts(contents.fuzzy_match or "")
            checks = await check_fuzzy(subject, self.intent, texts, self.dialect, self.judge)
        if finding.problem is FindingProblem.SCRIPT_FAILED:
            checks = [check.model_copy(update={"note": f"{finding.problem}: {finding.detail}"}) for check in checks]
        return checks


def _lacks_shop(finding: PageFinding | None) -> bool:
    return finding is not None and finding.problem is FindingProblem.NOT_CONFIGURED


def _texts(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
