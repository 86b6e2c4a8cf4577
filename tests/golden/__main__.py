"""Run all pinned audits, rewrite results.json and print which cases changed: ``make golden``."""

from __future__ import annotations

import json
import sys
import time

from tests.golden.cases import CASES
from tests.golden.digest import digests
from tests.golden.pinned import RESULTS, difference, pinned


def main() -> None:
    """Rewrite the file."""
    before, after = pinned(), {}
    for case in CASES:
        started = time.process_time()
        after[case.name] = digests(case.run())
        if "--times" in sys.argv:
            print(f"{time.process_time() - started:6.2f} s  {case.name}: {after[case.name]['summary']}")
    RESULTS.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    names = [*before, *(name for name in after if name not in before)]
    changed = [text for name in names if (text := difference(name, before.get(name), after.get(name)))]
    print("\n".join([*changed, f"{len(changed)} of {len(after)} cases changed."]))


if __name__ == "__main__":
    main()
