#include "workers/parallel_look.h"

#include <expected>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "link/control_socket.h"
#include "link/conversation.h"
#include "sys/process_scan.h"
#include "wire/field_reader.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::workers {
namespace {

/// Such a process cannot answer, and is not waited for.
bool is_suspended(std::int64_t process) {
  const auto stat = sys::ProcessScan().read(process);
  return stat && stat->state == 'T';
}

/// Adds what it says.
void ask(const std::string& socket, Duration within, ParallelLook& look) {
  link::Conversation conversation(
      {.with = "the parallel run", .within = within, .limits = wire::FrameLimits{}});
  if (!conversation.connect(socket)) return;
  const auto process = conversation.other_process();
  if (process && is_suspended(*process)) return look.silent.push_back(*process);
  const auto answer = [&]() -> Result<wire::Frame> {
    if (Result<void> there = conversation.greet(
            {.role = wire::Role::Control, .version = 1, .program = "trainyard parallel"});
        !there) {
      return std::unexpected(std::move(there.error()));
    }
    return conversation.exchange(
        {.kind = wire::FrameKind::Request, .sequence = 1, .fields = R"({"request":"parallel"})"},
        wire::FrameKind::Reply);
  }();
  if (!answer) {
    if (process && is_suspended(*process)) look.silent.push_back(*process);
    return;
  }
  // A yard of another kind does not know the request.
  const auto fields = wire::parse_fields(answer->fields);
  if (fields && fields->contains("parallel")) look.answers.push_back(answer->fields);
}

}  // namespace

ParallelLook look_at_parallel_runs(Duration within) {
  ParallelLook look;
  for (const std::string& socket : link::control_sockets()) ask(socket, within, look);
  return look;
}

}  // namespace trainyard::workers
