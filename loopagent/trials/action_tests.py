"""The tests inside of action files: each call against a stand-in, and what comes of it against what is expected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlsplit

from loopagent.action import Action, ActionContext
from loopagent.actions.build import FileAction, StandIn, make_action
from loopagent.actions.checks import INVALID_PARAMS
from loopagent.actions.format import HTTP_KINDS, ActionFile, ActionTest, Mock
from loopagent.actions.means import Means
from loopagent.actions.recorded import TEST_RUN, TEST_STEP, TestSecrets
from loopagent.actions.throttle import Throttles
from loopagent.actions.tokens import Tokens
from loopagent.core.outcome import Outcome
from loopagent.core.params import check_params
from loopagent.egress import EgressPolicy, EgressSettings
from loopagent.egress.client import GuardedClient
from loopagent.egress.standin import StandInNetwork, anywhere
from loopagent.errors import ActionError
from loopagent.matching import differences
from loopagent.ports import ModelReply, ModelRequest
from loopagent.runtime.invoke import Invoker
from loopagent.trials.stand_in_server import StandInServer, mismatches


EVERYWHERE: Final = EgressSettings(private_networks=("0.0.0.0/0", "::/0"))
"""Nothing is dialled but the stand-in; hosts and ports of the file count all the same."""


@dataclass(frozen=True, slots=True)
class ActionTestResult:
    """How a test ended; `problems` is empty when all was as expected."""

    action: str
    test: str
    path: Path
    seconds: float
    problems: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        """Action and test."""
        return f"{self.action}: {self.test}"

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return not self.problems

    def text(self) -> str:
        """One line for each problem."""
        return "\n".join(self.problems)

    def public(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "action": self.action,
            "test": self.test,
            "path": str(self.path),
            "passed": self.passed,
            "problems": self.problems,
            "seconds": round(self.seconds, 3),
        }


def run_action_tests(
    actions: Iterable[Action[..., Any]],
    *,
    means: Means,
    named: str = "",
) -> list[ActionTestResult]:
    """Run the tests of actions; nothing outside of this machine is called.

    Args:
        actions: The actions; those that were not made of files have no tests.
        means: What they may use; of it only the allowed modules and the other actions count.
        named: Only tests with this text in the name of the action or the test.
    """
    found: list[ActionTestResult] = []
    for action in actions:
        if not isinstance(action, FileAction):
            continue
        path = action.path
        chosen = [one for one in action.file.tests if named in f"{action.file.name}: {one.name}"]
        found += [run_action_test(action.file, one, means=means, path=path) for one in chosen]
    return found


def run_action_test(
    file: ActionFile,
    test: ActionTest,
    *,
    means: Means,
    path: Path | None = None,
    documents: Mapping[str, str] | None = None,
) -> ActionTestResult:
    """Run one test; `documents` are those that belong to the action, where they do not lie beside its file."""
    started = perf_counter()
    problems = asyncio.run(_Trial(file, test, means, path, documents).problems())
    seconds = perf_counter() - started
    return ActionTestResult(file.name, test.name, path or Path(), seconds, problems)


class _Trial:
    """One test on its way."""

    def __init__(
        self,
        file: ActionFile,
        test: ActionTest,
        means: Means,
        path: Path | None,
        documents: Mapping[str, str] | None,
    ) -> None:
        self._path = path
        self._documents = documents
        self._file = file
        self._test = test
        self._means = means
        sends = file.run.kind in HTTP_KINDS
        exchanges = test.mock if sends else ()
        self._server = StandInServer(exchanges, _token_path(file))
        self._left = [] if sends else list(test.mock)
        self._found: list[str] = []

    async def problems(self) -> list[str]:
        with self._server.running():
            outcome = await self._outcome()
        problems = [*self._found, *self._server.problems, *self._unused()]
        return [*problems, *self._compare(outcome), *self._compare_requests()]

    async def _outcome(self) -> Outcome:
        invoker = Invoker()
        try:
            file = self._file.model_copy(update={"enabled": True})
            action = make_action(file, self._tame(), self._path, self._documents)
            params, problems, _ = check_params(action.spec.parameters, self._test.params)
            if problems:
                return Outcome.failed(INVALID_PARAMS, str(problems[0]))
            context = ActionContext(TEST_RUN, TEST_STEP, ask=self._ask)
            return await invoker.invoke(action, params, context)
        finally:
            await invoker.aclose()

    def _tame(self) -> Means:
        """What an action may use in a test: the stand-in instead of the world."""

        def client(policy: EgressPolicy) -> GuardedClient:
            network = StandInNetwork(self._server.port)
            return GuardedClient(replace(policy, proxy=None), resolver=anywhere, network=network)

        actions = {
            name: StandIn(one.spec, partial(self._stand_in, name))
            for name, one in self._means.actions.items()
        }
        return Means(
            egress=EVERYWHERE,
            secrets=TestSecrets(self._file.egress.hosts),
            allowed_modules=self._means.allowed_modules,
            actions=actions,
            client=client,
            chance=lambda: 0.0,
            tokens=Tokens(),
            throttles=Throttles(),
        )

    async def _stand_in(self, name: str, params: dict[str, Any], context: ActionContext) -> Any:
        del context
        mock = self._taken(
            lambda one: one.action == name and (one.params is None or one.params == params)
        )
        if mock is None:
            self._found.append(f"{name} was called with {params}, which is not expected")
            raise ActionError("not expected", code="not_expected", fatal=True)
        if mock.error is not None:
            raise ActionError(f"the test lets it fail as {mock.error}", code=mock.error)
        return mock.result

    async def _ask(self, request: ModelRequest, model: str | None) -> ModelReply:
        del request, model
        mock = self._taken(lambda one: one.reply is not None)
        if mock is None:
            self._found.append("the model was asked, which is not expected")
            raise ActionError("not expected", code="not_expected", fatal=True)
        return ModelReply(str(mock.reply))

    def _taken(self, fits: Callable[[Mock], bool]) -> Mock | None:
        found = next((one for one in self._left if fits(one)), None)
        if found is not None:
            self._left.remove(found)
        return found

    def _unused(self) -> list[str]:
        if self._file.run.kind in HTTP_KINDS:
            sent, known = len(self._server.asked), len(self._test.mock)
            return [f"{sent} requests were sent, {known} are expected"] if sent < known else []
        return [
            f"what stands in for {one.action or 'the model'} was not used" for one in self._left
        ]

    def _compare(self, outcome: Outcome) -> list[str]:
        expect = self._test.expect
        if expect.error is not None:
            code = None if outcome.error is None else outcome.error.code
            if code is not None and code.lower() == expect.error.lower():
                return []
            return [f"expected the error {expect.error}, got {_told(outcome)}"]
        if outcome.error is not None:
            return [f"expected a result, got {_told(outcome)}"]
        found = differences(expect.result, outcome.value, whole=True)
        return [f"result {one}" for one in found]

    def _compare_requests(self) -> list[str]:
        wanted, asked = self._test.expect.requests, self._server.asked
        if wanted is None:
            return []
        if len(wanted) != len(asked):
            return [f"expected {len(wanted)} requests, {len(asked)} were sent"]
        pairs = enumerate(zip(wanted, asked, strict=True), 1)
        return [f"request {n}: {one}" for n, (want, got) in pairs for one in mismatches(want, got)]


def _told(outcome: Outcome) -> str:
    error = outcome.error
    return (
        f"the result {outcome.text()[:200]}" if error is None else f"{error.code}: {error.message}"
    )


def _token_path(file: ActionFile) -> str | None:
    auth = getattr(file.run, "auth", None)
    url = getattr(auth, "token_url", None)
    return urlsplit(url).path if isinstance(url, str) else None
