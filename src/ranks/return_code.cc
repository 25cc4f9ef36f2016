#include "trainyard/return_code.h"

#include <array>
#include <utility>

namespace trainyard {
namespace {

constexpr std::array<std::pair<ReturnCode, std::string_view>, 16> kNames{{
    {ReturnCode::Ok, "ok"},
    {ReturnCode::BadTaskData, "bad-task-data"},
    {ReturnCode::TaskUnknown, "task-unknown"},
    {ReturnCode::TaskAborted, "task-aborted"},
    {ReturnCode::ExecutionException, "execution-exception"},
    {ReturnCode::ExecutionResultError, "execution-result-error"},
    {ReturnCode::EmptyResult, "empty-result"},
    {ReturnCode::Timeout, "timeout"},
    {ReturnCode::Busy, "busy"},
    {ReturnCode::LaunchFailed, "launch-failed"},
    {ReturnCode::InitFailed, "init-failed"},
    {ReturnCode::RankDied, "rank-died"},
    {ReturnCode::OutOfMemory, "out-of-memory"},
    {ReturnCode::CommunicationError, "communication-error"},
    {ReturnCode::BadConfig, "bad-config"},
    {ReturnCode::EarlyTermination, "early-termination"},
}};

}  // namespace

std::string_view to_text(ReturnCode code) {
  for (const auto& [known, text] : kNames) {
    if (known == code) return text;
  }
  return "unknown";
}

std::optional<ReturnCode> parse_return_code(std::string_view text) {
  for (const auto& [code, known] : kNames) {
    if (known == text) return code;
  }
  return std::nullopt;
}

}  // namespace trainyard
