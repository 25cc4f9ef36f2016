#include "io/task_server.h"

#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include <sys/random.h>
#include <sys/types.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/result.h"
#include "io/frame_server.h"
#include "model/ids.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/task.h"

namespace trainyard::io {
namespace {

std::string random_token() {
  std::array<std::uint8_t, 16> bytes{};
  const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
  check(got == static_cast<ssize_t>(bytes.size()), "random bytes from the kernel");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

struct TaskServer::State {
  struct Attempt {
    AttemptKey key;
    std::optional<ConnectionId> speaker;
    std::set<ConnectionId> helpers;
    int reports = 0;
  };

  State(FrameServer& with, OnReport to) : server(with), on_report(std::move(to)) {}

  Result<void> admit(ConnectionId connection, const wire::Hello& hello);
  void take(ConnectionId connection, const wire::Frame& frame);
  void gone(ConnectionId connection);
  static Door door(const std::weak_ptr<State>& weak, const wire::FrameLimits& limits);

  FrameServer& server;
  OnReport on_report;
  std::map<std::string, Attempt> attempts;  ///< By token.
  std::map<AttemptKey, std::string> tokens;
  std::map<ConnectionId, std::string> callers;  ///< The token that each came with.
};

Result<void> TaskServer::State::admit(ConnectionId connection, const wire::Hello& hello) {
  const auto found = attempts.find(hello.token);
  if (found == attempts.end()) {
    return std::unexpected(Error{"its token is not that of a running attempt"});
  }
  Attempt& attempt = found->second;
  if (hello.role == wire::Role::Helper) {
    if (attempt.helpers.size() == kHelpersMax) {
      return std::unexpected(Error{fmt::format("{} help this attempt already", kHelpersMax)});
    }
    attempt.helpers.insert(connection);
  } else {
    if (attempt.speaker) {
      return std::unexpected(Error{"somebody speaks for this attempt already"});
    }
    attempt.speaker = connection;
  }
  callers.emplace(connection, hello.token);
  return {};
}

void TaskServer::State::take(ConnectionId connection, const wire::Frame& frame) {
  Attempt& attempt = attempts.at(callers.at(connection));
  auto report = wire::read_report(frame.fields);
  if (!report) return server.end(connection, report.error().message);
  if (auto* const message = std::get_if<wire::Message>(&*report)) {
    if (!frame.buffers.empty()) message->buffer = std::as_bytes(std::span(frame.buffers.front()));
    const auto shared = server.shared(connection, frame);
    if (!shared.empty()) message->buffer = shared.front();
  }
  // Of progress only the last word is kept, and messages are handed on at once: no need to count.
  const bool counts = std::holds_alternative<wire::StageWord>(*report);
  if (counts && attempt.speaker != connection) {
    return server.end(connection, "a helper says nothing of the life of its task");
  }
  if (counts && ++attempt.reports > kReportsMax) {
    return server.end(connection, fmt::format("more than {} reports of one attempt", kReportsMax));
  }
  on_report(attempt.key, std::move(*report));
}

void TaskServer::State::gone(ConnectionId connection) {
  const auto caller = callers.extract(connection);
  const auto attempt = attempts.find(caller.mapped());
  if (attempt == attempts.end()) return;
  attempt->second.helpers.erase(connection);
  if (attempt->second.speaker == connection) attempt->second.speaker.reset();
}

TaskServer::TaskServer(FrameServer& server, OnReport on_report)
    : state_(std::make_shared<State>(server, std::move(on_report))) {
  server.open_door(wire::Role::Task, State::door(state_, wire::kTaskLimits));
  server.open_door(wire::Role::Helper, State::door(state_, wire::kHelperLimits));
}

Door TaskServer::State::door(const std::weak_ptr<State>& weak, const wire::FrameLimits& limits) {
  return {
      .takes = wire::FrameKind::Report,
      .limits = limits,
      // It may train for days before it has something to say.
      .may_be_silent = true,
      .admit = [weak](ConnectionId connection,
                      const wire::Hello& hello) { return weak.lock()->admit(connection, hello); },
      .on_frame =
          [weak](ConnectionId connection, const wire::Frame& frame) {
            const std::shared_ptr<State> held = weak.lock();
            if (held) held->take(connection, frame);
          },
      .on_gone =
          [weak](ConnectionId connection) {
            if (const auto held = weak.lock()) held->gone(connection);
          }};
}

TaskServer::~TaskServer() {
  state_->server.close_door(wire::Role::Task);
  state_->server.close_door(wire::Role::Helper);
}

std::string TaskServer::expect(AttemptKey key) {
  std::string token = random_token();
  const bool fresh = state_->tokens.try_emplace(key, token).second;
  check(fresh, "an attempt is expected once");
  state_->attempts.try_emplace(token, State::Attempt{.key = key, .speaker = std::nullopt});
  return token;
}

void TaskServer::forget(AttemptKey key) {
  if (!state_->tokens.contains(key)) return;
  state_->server.catch_up();
  const auto token = state_->tokens.extract(key);
  if (token.empty()) return;
  const auto attempt = state_->attempts.extract(token.mapped());
  std::set<ConnectionId> over = attempt.mapped().helpers;
  const std::optional<ConnectionId> speaker = attempt.mapped().speaker;
  if (speaker) over.insert(*speaker);
  for (const ConnectionId connection : over) state_->server.end(connection, "the attempt is over");
}

void TaskServer::order(AttemptKey key, const wire::TaskOrder& order) {
  const auto token = state_->tokens.find(key);
  if (token == state_->tokens.end()) return;
  const std::optional<ConnectionId> speaker = state_->attempts.at(token->second).speaker;
  if (!speaker) return;
  state_->server.send(*speaker, {.kind = wire::FrameKind::Order, .fields = wire::to_fields(order)});
}

const std::string& TaskServer::path() const { return state_->server.path(); }

}  // namespace trainyard::io
