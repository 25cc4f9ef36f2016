#include "link/task_server.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "model/event.h"
#include "model/stages_of_ranks.h"
#include "sys/token.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {
struct TaskServer::State {
  struct Speaker {
    std::optional<ConnectionId> connection;
    int reports = 0;
    model::SpokenWords words;
    std::optional<wire::TrainOrder> order;  ///< That it trains by; nothing: it waits for one.
  };
  struct Attempt {
    model::AttemptKey key;
    std::optional<model::StagesOfRanks> stages;  ///< Of one that has ranks.
    std::vector<Speaker> speakers;               ///< By rank, or the one there is, if any.
    std::set<ConnectionId> helpers;
  };
  struct Caller {
    std::string token;
    std::optional<std::size_t> place;  ///< Among the speakers; nothing: a helper.
  };

  State(FrameServer& with, OnReport to) : server(with), on_report(std::move(to)) {}

  Result<void> admit(ConnectionId connection, const wire::Hello& hello);
  static Result<std::size_t> place_of(const Attempt& attempt, const wire::Hello& hello);
  void take(ConnectionId connection, const wire::Frame& frame);
  void take_word(ConnectionId connection, wire::StageWord word);
  void gone(ConnectionId connection);
  void repeat_order(ConnectionId connection);
  void send_order(ConnectionId connection, const wire::TrainOrder& order);
  static Door door(const std::weak_ptr<State>& weak, const wire::FrameLimits& limits);

  FrameServer& server;
  OnReport on_report;
  std::map<std::string, Attempt> attempts;  ///< By token.
  std::map<model::AttemptKey, std::string> tokens;
  std::map<ConnectionId, Caller> callers;
};

Result<void> TaskServer::State::admit(ConnectionId connection, const wire::Hello& hello) {
  auto found = attempts.find(hello.token);
  const auto no_token = [] {
    return std::unexpected(Error{"its token is not that of a running attempt"});
  };
  if (found == attempts.end()) return no_token();
  Attempt& attempt = found->second;
  if (hello.role == wire::Role::Helper) {
    if (attempt.helpers.size() == kHelpersMax) {
      return std::unexpected(Error{fmt::format("{} help this attempt already", kHelpersMax)});
    }
    attempt.helpers.insert(connection);
    callers.emplace(connection, Caller{.token = hello.token});
    return {};
  }
  const Result<std::size_t> place = place_of(attempt, hello);
  if (!place) return std::unexpected(place.error());
  if (const std::optional<ConnectionId> speaks = attempt.speakers[*place].connection) {
    // A script runs its commands one after the other. The end of the connection of the last command
    // may not have been read yet.
    server.catch_up(*speaks);
    found = attempts.find(hello.token);
    if (found == attempts.end()) return no_token();
    if (found->second.speakers[*place].connection) {
      return std::unexpected(Error{hello.role == wire::Role::Rank
                                       ? fmt::format("two processes are rank {}", *place)
                                       : "somebody speaks for this attempt already"});
    }
  }
  found->second.speakers[*place].connection = connection;
  found->second.speakers[*place].words.connects();
  callers.emplace(connection, Caller{.token = hello.token, .place = *place});
  return {};
}

Result<std::size_t> TaskServer::State::place_of(const Attempt& attempt, const wire::Hello& hello) {
  const auto refused = [](std::string why) { return std::unexpected(Error{std::move(why)}); };
  if (attempt.speakers.empty()) {
    return refused(
        "the task has one phase, and waits for no device: 'two-phase: true' in the job file has "
        "it wait; who only says how far it is comes as a helper");
  }
  const bool is_rank = hello.role == wire::Role::Rank;
  const int ranks = attempt.stages ? attempt.stages->ranks() : 0;
  if (!is_rank && ranks > 0) {
    return refused(fmt::format("the task has {} ranks: who speaks must say which it is", ranks));
  }
  if (is_rank && ranks == 0) return refused("the task has no ranks: 'ranks' in the job file");
  // Only a rank has a number, whatever others say.
  const int rank = is_rank ? hello.rank.value_or(ranks) : 0;
  if (is_rank && (hello.ranks != ranks || rank >= ranks)) {
    return refused(fmt::format("it is no rank of this task, which has {}", ranks));
  }
  return static_cast<std::size_t>(rank);
}

void TaskServer::State::take(ConnectionId connection, const wire::Frame& frame) {
  const Caller& caller = callers.at(connection);
  auto report = wire::read_report(frame.fields);
  if (!report) return server.end(connection, report.error().message);
  if (auto* const word = std::get_if<wire::StageWord>(&*report)) {
    return take_word(connection, std::move(*word));
  }
  if (std::holds_alternative<wire::Progress>(*report) && caller.place.value_or(0) > 0) return;
  if (auto* const message = std::get_if<wire::Message>(&*report)) {
    if (!frame.buffers.empty()) message->buffer = std::as_bytes(std::span(frame.buffers.front()));
    const auto shared = server.shared(connection, frame);
    if (!shared.empty()) message->buffer = shared.front();
  }
  // Of progress only the last word is kept, and messages are handed on at once: no need to count.
  on_report(attempts.at(caller.token).key, std::move(*report));
}

void TaskServer::State::take_word(ConnectionId connection, wire::StageWord word) {
  const Caller& caller = callers.at(connection);
  if (!caller.place) {
    return server.end(connection, "a helper says nothing of the life of its task");
  }
  Attempt& attempt = attempts.at(caller.token);
  Speaker& speaker = attempt.speakers[*caller.place];
  if (++speaker.reports > kReportsMax) {
    return server.end(connection, fmt::format("more than {} reports of one process", kReportsMax));
  }
  if (!speaker.words.hear(word.said)) return;
  if (word.said == model::Said::OutOfMemory) speaker.order.reset();
  if (attempt.stages) {
    const auto rank = static_cast<int>(*caller.place);
    const std::optional<model::Said> said = attempt.stages->hear(rank, word.said);
    if (!said) return;
    if (*said != word.said) {
      word.message =
          fmt::format("rank {} spoke out of turn, and said {}", rank, model::to_text(word.said));
    } else if (!word.message.empty()) {
      word.message = fmt::format("rank {}: {}", rank, word.message);
    }
    word.said = *said;
  }
  on_report(attempt.key, std::move(word));
}

void TaskServer::State::send_order(ConnectionId connection, const wire::TrainOrder& order) {
  server.send(connection, {.kind = wire::FrameKind::Order, .fields = wire::to_fields(order)});
}

/// The connection that it had may have been lost with the order on its way.
void TaskServer::State::repeat_order(ConnectionId connection) {
  const Caller& caller = callers.at(connection);
  if (!caller.place) return;
  std::optional<wire::TrainOrder> order = attempts.at(caller.token).speakers[*caller.place].order;
  if (!order) return;
  order->again = true;
  send_order(connection, *order);
}

void TaskServer::State::gone(ConnectionId connection) {
  const auto caller = callers.extract(connection);
  const auto attempt = attempts.find(caller.mapped().token);
  if (attempt == attempts.end()) return;
  const std::optional<std::size_t> place = caller.mapped().place;
  if (place) {
    attempt->second.speakers[*place].connection.reset();
  } else {
    attempt->second.helpers.erase(connection);
  }
}

TaskServer::TaskServer(FrameServer& server, OnReport on_report)
    : state_(std::make_shared<State>(server, std::move(on_report))) {
  server.open_door(wire::Role::Task, State::door(state_, wire::kTaskLimits));
  server.open_door(wire::Role::Rank, State::door(state_, wire::kTaskLimits));
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
      .on_welcome =
          [weak](ConnectionId connection) {
            if (const auto held = weak.lock()) held->repeat_order(connection);
          },
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
  state_->server.close_door(wire::Role::Rank);
  state_->server.close_door(wire::Role::Helper);
}

std::string TaskServer::expect(model::AttemptKey key, Speaks who) {
  std::string token = sys::random_token();
  const bool fresh = state_->tokens.try_emplace(key, token).second;
  check(fresh, "an attempt is expected once");
  State::Attempt attempt{.key = key};
  if (who.tells_its_life) {
    if (who.ranks > 0) attempt.stages.emplace(who.ranks);
    attempt.speakers.resize(static_cast<std::size_t>(std::max(who.ranks, 1)));
  }
  state_->attempts.try_emplace(token, std::move(attempt));
  return token;
}

void TaskServer::forget(model::AttemptKey key) {
  if (!state_->tokens.contains(key)) return;
  state_->server.catch_up();
  const auto token = state_->tokens.extract(key);
  if (token.empty()) return;
  const auto attempt = state_->attempts.extract(token.mapped());
  std::set<ConnectionId> over = attempt.mapped().helpers;
  for (const State::Speaker& each : attempt.mapped().speakers) {
    if (each.connection) over.insert(*each.connection);
  }
  for (const ConnectionId connection : over) state_->server.end(connection, "the attempt is over");
}

void TaskServer::order(model::AttemptKey key, std::span<const wire::TaskOrder> orders) {
  const auto token = state_->tokens.find(key);
  if (token == state_->tokens.end()) return;
  State::Attempt& attempt = state_->attempts.at(token->second);
  check(orders.size() == attempt.speakers.size(), "an order for each process of a task");
  if (attempt.stages) attempt.stages->told_to_train();
  for (std::size_t place = 0; place < orders.size(); ++place) {
    State::Speaker& speaker = attempt.speakers[place];
    speaker.order = std::get<wire::TrainOrder>(orders[place]);
    speaker.words.grant_device();
    if (speaker.connection) state_->send_order(*speaker.connection, *speaker.order);
  }
}

const std::string& TaskServer::path() const { return state_->server.path(); }

}  // namespace trainyard::link
