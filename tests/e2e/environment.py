"""The environment of tests, which has nothing that a developer has set for other programs."""
import os
import re
import sys

# Variables of the machine, of compilers, and of the build's own tests (CMakeLists.txt sets those for each test).
KEPT = re.compile(r"PATH|HOME|USER|LOGNAME|CC|CXX|CCACHE_\w+|CPATH|C(?:PLUS)?_INCLUDE_PATH|(?:LD_)?LIBRARY_PATH|PKG_CONFIG_PATH|"
                  r"CMAKE_PREFIX_PATH|CMAKE_CXX_COMPILER_LAUNCHER|PYTHONDONTWRITEBYTECODE|RUN_TESTS(?:_NAME)?|"
                  r"TRAINYARD(?:_(?:BUILD|FAKE_NVML_DIR|PARALLEL_TOOL|SANITIZED|SHIPPED))?")
# Git reads no settings of a user or of the machine.
SET = {"LANG": "C.UTF-8", "TERM": "xterm", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def clean_environment():
    """Gives this process, and all that it starts, the environment and the umask of tests."""
    kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    os.environ.clear()
    os.environ.update(kept, **SET)
    # The python3 of tasks is that of the tests: the shim of a version manager takes half a second for each start.
    directories = [os.path.dirname(sys.executable), *filter(None, kept.get("PATH", "").split(os.pathsep))]
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys(directories))
    os.umask(0o022)
