# The front door. Each verb is one line; the work is in CMakePresets.json, scripts/ and tools/.
.PHONY: demo test build ci check fmt fmt-check lint lint-changed asan tsan clang sim shell bench fuzz fresh layers prose site
# What a pipe begins must succeed, too.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
SEEDS ?= 20000
GROUP ?= all
# Also what is not committed yet, and not what is deleted. Git lists no file in a copy that a repository around it ignores.
SOURCES = git ls-files -z --cached --others --exclude-standard '*.h' '*.cc' | sort -zu | comm -z -23 - <(git ls-files -z --deleted | sort -zu) \
  | { grep -az '' || { echo "git lists no .h or .cc file here: format a clone" >&2; exit 1; }; }

demo:         ; scripts/setup build && scripts/demo                          # the main job, on real data
test:         ; scripts/setup test && cmake --workflow --preset dev && tools/run_tests.py build/dev  # as CI does
build:        ; scripts/setup build && cmake --workflow --preset release     # what is shipped
clang:        ; scripts/setup check && cmake --workflow --preset clang && tools/run_tests.py build/clang --all
asan:         ; scripts/setup check && cmake --workflow --preset asan && tools/run_tests.py build/asan --all --timeout 300
tsan:         ; scripts/setup check && cmake --workflow --preset tsan        # data races
lint:         ; scripts/setup check && cmake --workflow --preset tidy        # clang-tidy over everything
lint-changed: ; scripts/setup check && tools/lint_changed.py               # over what changed of late
layers:       ; /usr/bin/python3 tools/layers.py                                      # who may include whom
prose:        ; /usr/bin/python3 tools/prose.py build/dev/src/cli/trainyard           # how README and --help are worded
fmt:          ; scripts/setup format && $(SOURCES) | xargs -0r clang-format-19 -i
fmt-check:    ; scripts/setup format && $(SOURCES) | xargs -0r -n 100 -P 2 clang-format-19 --dry-run --Werror
sim:          ; scripts/setup build && TRAINYARD_SIM_SEEDS=$(SEEDS) TRAINYARD_SIM_SEED=$(SEED) scripts/sim
shell:        ; TRAINYARD_SHELL_CASES=$(SEEDS) TRAINYARD_SHELL_SEED=$(SEED) scripts/shell  # values in commands
bench:        ; scripts/setup bench && scripts/bench $(GROUP)                # beside the peers
fuzz:         ; scripts/setup check && scripts/fuzz                          # a minute a parser
site:         ; scripts/setup site && mkdocs build --strict                  # the pages, for a browser: build/site
fresh:        ; scripts/fresh                                                # the two commands on a bare Debian 12
ci:           ; scripts/ci                                                   # what must pass before a change lands
check:        ; scripts/check                                                # everything; STEP=asan runs one step
