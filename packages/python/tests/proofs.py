"""What this package says of proofs. It reads a list of cases as JSON, and prints a list of results as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from strongroom import ConfigurationError
from strongroom.verify import ProofError, verify_checkpoint, verify_erasure_receipt, verify_log


def result_of(case: dict[str, Any]) -> Any:
    keys = case["public_keys"]
    try:
        if "log" in case:
            log = case["log"].encode()
            # In pieces, because a file is not read at once.
            pieces = [log[at : at + 777] for at in range(0, len(log), 777)]
            report = verify_log(pieces, public_keys=keys, checkpoints=case["checkpoints"])
            assert report == verify_log(case["log"], public_keys=keys, checkpoints=case["checkpoints"])
            return asdict(report)
        if "receipt" in case:
            return verify_erasure_receipt(case["receipt"], public_keys=keys)
        return verify_checkpoint(case["checkpoint"], public_keys=keys)
    except (ProofError, ConfigurationError) as error:
        return error.code


print(json.dumps([result_of(case) for case in json.load(sys.stdin)]))
