// All of the public interface, but for context_json.h and steps.h, which include all of
// nlohmann/json.
#pragma once

#include "trainyard/bytes.h"          // IWYU pragma: export
#include "trainyard/config.h"         // IWYU pragma: export
#include "trainyard/event_bus.h"      // IWYU pragma: export
#include "trainyard/metrics.h"        // IWYU pragma: export
#include "trainyard/pipeline.h"       // IWYU pragma: export
#include "trainyard/rank_executor.h"  // IWYU pragma: export
#include "trainyard/rank_program.h"   // IWYU pragma: export
#include "trainyard/result.h"         // IWYU pragma: export
#include "trainyard/rl_context.h"     // IWYU pragma: export
#include "trainyard/status.h"         // IWYU pragma: export
#include "trainyard/step_timer.h"     // IWYU pragma: export
#include "trainyard/task.h"           // IWYU pragma: export
#include "trainyard/task_group.h"     // IWYU pragma: export
#include "trainyard/task_options.h"   // IWYU pragma: export
#include "trainyard/task_outcome.h"   // IWYU pragma: export
#include "trainyard/yard.h"           // IWYU pragma: export
