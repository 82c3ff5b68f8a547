"""What action files say about approvals: read into the engine's words, and linted."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopagent.actions.build import make_action
from loopagent.actions.reading import read_actions
from loopagent.core.asking import Asking
from loopagent.errors import ConfigError
from loopagent.project import load_project
from tests.actions.making import means, read


FILE = """\
name: mail.send
description: Sends a mail.
effects: {effects}
approval: {{{approval}}}
params:
  type: object
  additionalProperties: false
  properties: {{to: {{type: string}}, body: {{type: string}}}}
run: {{kind: prompt, template: "{{{{ params.to }}}}"}}
"""
ALL = (
    "policy: ask, when: \"ends_with(params.to, '@example.com') == `false`\", show: [to], allowEdit: false,"
    " expires: 24h, onExpiry: fail, approvers: [ann, 'role:sales'], remember: session"
)


def text(approval: str, effects: str = "external") -> str:
    return FILE.format(approval=approval, effects=effects)


def test_all_of_it_reaches_the_engine() -> None:
    spec = make_action(read(text(ALL)), means()).spec
    assert spec.approval == "ask"
    assert spec.asking == Asking(
        when="ends_with(params.to, '@example.com') == `false`",
        show=("to",),
        allow_edit=False,
        expires_seconds=86_400,
        on_expiry="fail",
        approvers=("ann", "role:sales"),
        remember="session",
    )
    assert len(spec.fingerprint) == 64
    plain = make_action(read(text("policy: ask")), means()).spec
    assert (plain.asking, plain.fingerprint) == (None, "")


def test_what_is_remembered_is_bound_to_what_the_file_does() -> None:
    def digest(changed: str) -> str:
        return make_action(read(changed), means()).spec.fingerprint

    first = text("policy: ask, remember: run")
    assert digest(first) == digest(first + "tests: []\n")
    assert digest(first) != digest(first.replace("params.to", "params.body"))


@pytest.mark.parametrize(
    ("approval", "effects", "complaint"),
    [
        ("when: params.to", "external", "needs `policy: ask`"),
        ("policy: ask, when: params.too", "external", "no parameter 'too'"),
        ("policy: ask, when: 'params.to >'", "external", "no JMESPath expression"),
        ("policy: ask, show: [t0]", "external", "no parameter 't0'"),
        ("policy: ask, approvers: ['scope:admn']", "external", "did you mean admin"),
        ("policy: ask, approvers: ['team:x']", "external", "is no approver"),
        ("policy: ask, expires: soon", "external", "is no time"),
        ("policy: ask, remember: run", "destructive", "asked about every time"),
    ],
)
def test_lint(approval: str, effects: str, complaint: str) -> None:
    found = read_actions(text(approval, effects), Path("x.action.yaml")).problems
    assert len(found) == 1, found
    assert complaint in found[0]
    assert found[0].startswith("x.action.yaml:4:")


def test_what_says_nothing_is_told() -> None:
    found = read_actions(text("policy: auto, show: [to]"), Path("x.action.yaml")).warnings
    assert len(found) == 1
    assert "while the policy is auto" in found[0]


PIPELINE = """\
---
name: mail.twice
description: Sends two.
effects: external
approval: {{policy: ask{more}}}
params: {{type: object, required: [to], properties: {{to: {{type: string}}}}}}
run:
  kind: pipeline
  steps: [{{id: one, action: mail.send, with: {{to: {{from: params.to}}}}}}]
"""


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (", approvers: [bob]", "only ann, role:sales may approve mail.send"),
        ("", "only ann, role:sales may approve mail.send"),
        (", approvers: [ann], when: params.to", "cannot have `approval.when`"),
        (", approvers: [ann], remember: session", "approvals of mail.send are remembered: run"),
    ],
)
def test_a_pipeline_lets_nothing_through_that_its_steps_would_not(
    tmp_path: Path, more: str, complaint: str
) -> None:
    (tmp_path / "actions").mkdir()
    one = text("policy: ask, approvers: [ann, 'role:sales'], remember: run")
    both = one + PIPELINE.format(more=more)
    (tmp_path / "actions" / "mail.action.yaml").write_text(both)
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path, env={})
    assert [one for one in caught.value.problems if complaint in one], caught.value.problems


def test_the_operator_can_only_tighten(tmp_path: Path) -> None:
    for name in ("actions", "agents"):
        (tmp_path / name).mkdir()
    (tmp_path / "actions" / "mail.action.yaml").write_text(text("policy: auto"))
    (tmp_path / "agents" / "a.agent.yaml").write_text("name: a\nactions: [mail.send]\n")
    settings = tmp_path / "loopagent.toml"
    settings.write_text('[approval]\n"mail.send" = "ask"\n')
    spec = load_project(tmp_path, env={}).agents["a"].spec
    assert spec.approval_of(spec.actions[0]) == "ask"
    settings.write_text('[approval]\n"mail.sent" = "ask"\n')
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path, env={})
    assert "did you mean mail.send" in str(caught.value.problems)
    settings.write_text("")
    (tmp_path / "agents" / "a.agent.yaml").write_text(
        "name: a\nactions: [mail.send]\napproval: {actions: {mail: ask}}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path, env={})
    assert "has no action 'mail'" in str(caught.value.problems)
