// All of the public interface.
#pragma once

#include "trainyard/bytes.h"       // IWYU pragma: export
#include "trainyard/config.h"      // IWYU pragma: export
#include "trainyard/result.h"      // IWYU pragma: export
#include "trainyard/status.h"      // IWYU pragma: export
#include "trainyard/task.h"        // IWYU pragma: export
#include "trainyard/task_group.h"  // IWYU pragma: export
#include "trainyard/yard.h"        // IWYU pragma: export
