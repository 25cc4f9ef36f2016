#include "run/agent_looker.h"

#include <expected>
#include <utility>
#include <variant>

#include "base/duration_text.h"
#include "run/machine_look.h"

namespace trainyard::run {

AgentLooker::AgentLooker(sys::EventLoop& loop, const std::string& program,
                         const wire::AgentLook& look, Told told)
    : loop_(loop), told_(std::move(told)) {
  Result<sys::StreamProgram> started = sys::StreamProgram::start({program, "agent", "--look"});
  if (!started) {
    // Called later, as the owner does not have this object yet.
    timer_ = loop_.after({}, [this, why = std::move(started.error())]() mutable {
      timer_.reset();
      tell(std::unexpected(std::move(why)));
    });
    return;
  }
  program_.emplace(std::move(*started));
  stream_ = std::make_unique<sys::LineStream>(
      loop_, program_->take_stream(),
      sys::LineStream::Options{
          .line_max = wire::kAgentLineMax,
          .on_line = [this](std::string_view line) { hear(line); },
          .on_end =
              [this](const std::string& why) {
                tell(std::unexpected(
                    Error{"the process that checks the machine has exited: " + why}));
              }});
  stream_->send(wire::to_line(wire::YardSays{.what = look}));
  timer_ = loop_.after(kLookMax, [this] {
    timer_.reset();
    tell(std::unexpected(
        Error{"the check of the machine takes longer than " + trainyard::to_text(kLookMax)}));
  });
}

AgentLooker::~AgentLooker() {
  if (timer_) loop_.cancel(*timer_);
}

void AgentLooker::hear(std::string_view line) {
  Result<wire::AgentSays> said = wire::agent_says(line);
  auto* const seen = said ? std::get_if<wire::AgentSeen>(&said->what) : nullptr;
  tell(seen != nullptr
           ? Result<wire::AgentSeen>(std::move(*seen))
           : std::unexpected(Error{"the process that checks the machine sent an invalid answer"}));
}

void AgentLooker::tell(Result<wire::AgentSeen> seen) {
  if (timer_) loop_.cancel(*std::exchange(timer_, std::nullopt));
  Told told = std::move(told_);
  told(std::move(seen));
}

}  // namespace trainyard::run
