"""``dpaudit completion``: scripts that complete commands, options and their choices, made from the parsers."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping

Parsers = Mapping[str, argparse.ArgumentParser]


def completion_script(shell: str, parsers: Parsers) -> str:
    """Return the completion script of a shell: ``bash``, ``zsh`` (which reads that of bash) or ``fish``."""
    if shell == "fish":
        return "\n".join(_fish(parsers))
    first = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return first + _bash(parsers)


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """Options, and the choices of what comes without an option (subcommands among them)."""
    return [
        *sorted(parser._option_string_actions),
        *(word for action in _positionals(parser) for word in _choices(action)),
    ]


def _positionals(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if not action.option_strings]


def _choices(action: argparse.Action) -> list[str]:
    return [str(choice) for choice in action.choices or ()]


def _options_with_choices(parsers: Parsers) -> dict[str, list[str]]:
    """Every option that takes one of a few words; options of one name have the same words in all commands, or all of them."""
    found: dict[str, list[str]] = {}
    for parser in parsers.values():
        for action in parser._actions:
            for option in action.option_strings if action.choices else ():
                found[option] = list(dict.fromkeys([*found.get(option, []), *_choices(action)]))
    return found


def _bash(parsers: Parsers) -> str:
    options = "".join(
        f'    {option}) COMPREPLY=($(compgen -W {shlex.quote(" ".join(choices))} -- "$word")); return ;;\n'
        for option, choices in _options_with_choices(parsers).items()
    )
    commands = "".join(
        f"    {name}) words={shlex.quote(' '.join(_words(parser)))} ;;\n" for name, parser in parsers.items() if name
    )
    return f"""_dpaudit() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words
  case "$before" in
{options}  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    words={shlex.quote(" ".join(_words(parsers[""])))}
  else case "${{COMP_WORDS[1]}}" in
{commands}  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _dpaudit dpaudit"""


def _fish(parsers: Parsers) -> Iterator[str]:
    subcommands = next(a for a in _positionals(parsers[""]) if isinstance(a, argparse._SubParsersAction))
    for described in subcommands._choices_actions:
        text = shlex.quote(described.help or "")
        yield f"complete -c dpaudit -n __fish_use_subcommand -a {described.dest} -d {text}"
    for name, parser in parsers.items():
        seen = f"-n '__fish_seen_subcommand_from {name}'" if name else "-n __fish_use_subcommand"
        for action in parser._actions:
            words = f" -x -a {shlex.quote(' '.join(_choices(action)))}" if action.choices else ""
            # Placeholders of argparse in the help, such as %(default)s, are left out.
            text = f" -d {shlex.quote(action.help)}" if action.help and "%(" not in action.help else ""
            if action.option_strings:
                names = " ".join(f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in action.option_strings)
                yield f"complete -c dpaudit {seen} {names}{words}{text}"
            elif name and words:
                yield f"complete -c dpaudit {seen}{words}"
