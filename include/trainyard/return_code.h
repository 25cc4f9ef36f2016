// How an execution ended, in one word (NVFlare `ReturnCode`; those that only its server gives are
// not here). Why, is in words beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard {

enum class ReturnCode : std::uint8_t {
  Ok,
  BadTaskData,           ///< The executor cannot make sense of what it got.
  TaskUnknown,           ///< The executor does not know a task of that name.
  TaskAborted,           ///< It was stopped.
  ExecutionException,    ///< The executor threw.
  ExecutionResultError,  ///< Its result cannot be used.
  EmptyResult,           ///< It has nothing to return.
  Timeout,               ///< A time limit, which the message names.
  Busy,                  ///< Another task is being executed.
  LaunchFailed,          ///< The ranks could not be started, or did not connect.
  InitFailed,            ///< A component could not be made.
  RankDied,
  OutOfMemory,
  CommunicationError,  ///< A message of a rank was not understood.
  BadConfig,
  EarlyTermination,  ///< The executor has done enough.
};

/// "ok", "bad-task-data", ... as on the wire.
std::string_view to_text(ReturnCode code);
std::optional<ReturnCode> parse_return_code(std::string_view text);

}  // namespace trainyard
