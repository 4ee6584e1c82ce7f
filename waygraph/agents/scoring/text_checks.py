"""Checks of a text against required contents: the answer of the agent, or what a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from waygraph.agents.scoring.answer_text import includes_text, is_same_text
from waygraph.agents.scoring.checks import ScoringNeed, TaskCheck, evidence
from waygraph.agents.scoring.dialects import ScoringDialect
from waygraph.agents.scoring.judge import AnswerJudge, GradeVerdict
from waygraph.agents.tasks.task import ALTERNATIVES_SEPARATOR, UNACHIEVABLE, EvaluatorKind
from waygraph.core.errors import ModelFailure


@dataclass(frozen=True, slots=True)
class TextSubject:
    """A text that is checked.

    Attributes
    ----------
    evaluator
        The evaluator that checks it.
    name
        What it is, such as `answer` or `page 0`.
    text
        The text.
    """

    evaluator: EvaluatorKind
    name: str
    text: str

    def check(
        self,
        rule: str,
        expected: str,
        *,
        score: float | None = None,
        need: ScoringNeed | None = None,
        note: str = "",
    ) -> TaskCheck:
        """Return a check of this text."""
        return TaskCheck(
            evaluator=self.evaluator,
            rule=rule,
            subject=self.name,
            score=score,
            need=need,
            expected=evidence(expected),
            found=evidence(self.text),
            note=note,
        )


def check_equal(subject: TextSubject, reference: str) -> TaskCheck:
    """Check that a text equals the reference."""
    return subject.check("exact_match", reference, score=float(is_same_text(reference, subject.text)))


def check_includes(subject: TextSubject, references: Sequence[str], dialect: ScoringDialect) -> TaskCheck:
    """Check that a text contains all references.

    Parameters
    ----------
    subject
        The text. Alternatives in references are known in pages in every dialect, in answers in some. In an answer, a
        single reference of one character must be a token.
    references
        Required texts.
    dialect
        Whether a part of them gives a part of the score.

    Returns
    -------
    TaskCheck
        The check; its note names what is missing.
    """
    if subject.evaluator is EvaluatorKind.STRING_MATCH:
        missing = [
            reference
            for reference in references
            if not includes_text(
                reference,
                subject.text,
                as_token=len(references) == 1,
                alternatives=dialect.has_answer_alternatives,
            )
        ]
    else:
        missing = [
            reference
            for reference in references
            if not any(includes_text(part, subject.text) for part in reference.split(ALTERNATIVES_SEPARATOR))
        ]
    share = (len(references) - len(missing)) / len(references) if dialect.has_partial_credit else float(not missing)
    note = f"missing: {evidence('; '.join(missing))}" if missing else ""
    return subject.check("must_include", "; ".join(references), score=share, note=note)


async def check_fuzzy(
    subject: TextSubject, intent: str, references: Sequence[str], dialect: ScoringDialect, judge: AnswerJudge | None
) -> list[TaskCheck]:
    """Check with a judge that a text says what the references say.

    Parameters
    ----------
    subject
        The text. An empty one is wrong without a question to the judge.
    intent
        The task.
    references
        Reference answers.
    dialect
        Whether the judge sees them together.
    judge
        The judge; None: there is none.

    Returns
    -------
    list of TaskCheck
        One check per question to the judge.
    """
    questions = [references] if dialect.joins_fuzzy_references else [[reference] for reference in references]
    checks = []
    for question in questions:
        expected = "; ".join(question)
        if not subject.text:
            checks.append(subject.check("fuzzy_match", expected, score=float(not expected), note="there is no text"))
        elif judge is None:
            checks.append(subject.check("fuzzy_match", expected, need=ScoringNeed.MODEL))
        else:
            try:
                grade = await judge.grade(intent, question, subject.text, is_lenient=dialect.joins_fuzzy_references)
            except ModelFailure as error:
                checks.append(subject.check("fuzzy_match", expected, need=ScoringNeed.MODEL, note=str(error)))
                continue
            note = f"{grade.verdict.value}: {evidence(grade.reason)}"
            score = float(grade.verdict is GradeVerdict.CORRECT)
            checks.append(subject.check("fuzzy_match", expected, score=score, note=note))
    return checks


async def check_unachievable(subject: TextSubject, intent: str, reason: str, judge: AnswerJudge | None) -> TaskCheck:
    """Check that an answer says that the task is impossible: as `N/A`, or with the actual reason.

    Parameters
    ----------
    subject
        The answer.
    intent
        The task.
    reason
        The actual reason; empty: only `N/A` is right.
    judge
        The judge of reasons; None: there is none.

    Returns
    -------
    TaskCheck
        The check.
    """
    expected = f"{UNACHIEVABLE}: {reason}" if reason else UNACHIEVABLE
    rule = "unachievable"
    if is_same_text(UNACHIEVABLE, subject.text):
        return subject.check(rule, expected, score=1.0)
    if not subject.text or not reason:
        return subject.check(rule, expected, score=0.0)
    if judge is None:
        return subject.check(rule, expected, need=ScoringNeed.MODEL)
    try:
        grade = await judge.compare_reasons(intent, reason, subject.text)
    except ModelFailure as error:
        return subject.check(rule, expected, need=ScoringNeed.MODEL, note=str(error))
    return subject.check(rule, expected, score=float(grade.is_same), note=evidence(grade.reason))
