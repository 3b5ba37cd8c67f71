#!/usr/bin/env python3
"""Every shipped record of schema 2, and one just written, against the shipped schema; and that the
schema refuses what it should. usage: record_schema.py RESULTS_DIR PROGRAM_THAT_PRINTS_A_RECORD"""
import copy
import glob
import json
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: no python3-jsonschema")
    sys.exit(77)

results, program = sys.argv[1:]
with open(results + "/schema/tuning.schema.json") as file:
    schema = json.load(file)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)

sample = json.loads(subprocess.run([program], check=True, capture_output=True).stdout)
validator.validate(sample)
checked = 1
for path in sorted(glob.glob(results + "/tuning/*/record.json")):
    with open(path) as file:
        record = json.load(file)
    if record["schema_version"] == 1:
        print(path + ": schema 1, read but no longer written")
        continue
    validator.validate(record)
    checked += 1


def refuses(change):
    bad = copy.deepcopy(sample)
    change(bad)
    assert not validator.is_valid(bad), change


# A control for each kind of rule: closed word lists, ranges, required members, multiples.
refuses(lambda r: r["entries"][0].update(decision="yes"))
refuses(lambda r: r["entries"][0]["config"].update(key_tile=100))
refuses(lambda r: r["entries"][0]["config"].update(row_block=-1))
refuses(lambda r: r["entries"][0]["config"].update(pack_k=True))
refuses(lambda r: r["entries"][0]["class"].update(dtype="f31"))
refuses(lambda r: r["entries"][0].pop("gain"))
refuses(lambda r: r.pop("integrity"))
refuses(lambda r: r.update(schema="something"))
print(f"{checked} records follow the schema")
