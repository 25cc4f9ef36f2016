// The admission of processes that connect: the check of each, and its connection.
#include <algorithm>
#include <cstddef>
#include <expected>

#include <fmt/format.h>

#include "ranks/launch_line.h"
#include "ranks/rank_group_state.h"
#include "sys/passing.h"
#include "sys/process_scan.h"
#include "sys/token.h"
#include "trainyard/return_code.h"

namespace trainyard::ranks {
namespace {

/// Longer than any real one: a loop would be a fault of /proc.
constexpr int kAncestorsMax = 10'000;
constexpr Duration::rep kEventMsMax = 1'000'000'000;

}  // namespace

Result<void> RankGroup::State::admit(link::ConnectionId connection, const wire::Hello& hello) {
  const auto known = std::ranges::find_if(tokens, [&](const std::string& each) {
    // A token that was used is gone.
    return !each.empty() && sys::same_token(each, hello.token);
  });
  if (known == tokens.end()) {
    return std::unexpected(Error{"its token is not that of a rank of this group"});
  }
  if (Result<void> descends = check_descent(connection); !descends) return descends;
  if (group.phase() != Phase::Launching) {
    return std::unexpected(Error{"all ranks have connected already"});
  }
  const Result<int> rank = rank_of(hello);
  if (!rank) {
    handle(RankRefused{rank.error().message});
    return std::unexpected(rank.error());
  }
  if (options.group.own_processes) {
    // Each has a token of its own, which is good for once.
    if (*rank != static_cast<int>(known - tokens.begin())) {
      return std::unexpected(Error{fmt::format("its token is not that of rank {}", *rank)});
    }
    known->clear();
  }
  joining.insert(*rank);
  post([this, connection, rank = *rank, of_epoch = epoch] {
    take_over(connection, rank, of_epoch);
  });
  return {};
}

/// The rank of the process; an error that ends the launch, as it will be as wrong the next time.
Result<int> RankGroup::State::rank_of(const wire::Hello& hello) const {
  if (!hello.rank) {
    return std::unexpected(
        Error{fmt::format("a process of the launcher does not know which rank it is{}",
                          hello.program.empty() ? "" : fmt::format(" ({})", hello.program))});
  }
  const RankNumber said{.rank = *hello.rank, .local_rank = 0, .ranks = hello.ranks};
  if (Result<void> known = check_rank(said, options.group.ranks); !known) {
    return std::unexpected(std::move(known.error()));
  }
  if (channels.at(static_cast<std::size_t>(*hello.rank)) != nullptr ||
      joining.contains(*hello.rank)) {
    return std::unexpected(Error{fmt::format("two processes are rank {}", *hello.rank)});
  }
  return *hello.rank;
}

/// A process that has not got its token from us is not let in.
Result<void> RankGroup::State::check_descent(link::ConnectionId connection) const {
  if (!starts_descendants(options.launcher)) return {};
  const sys::ProcessScan scan;
  std::int64_t pid = machinery_->server->process_of(connection);
  for (int i = 0; i < kAncestorsMax && pid > 1; ++i) {
    if (pid == machinery_->keeper->pid()) return {};
    const auto process = scan.read(pid);
    if (!process) break;
    pid = process->parent;
  }
  return std::unexpected(Error{"it was not started by the launcher of this group"});
}

void RankGroup::State::take_over(link::ConnectionId connection, int rank, std::uint32_t of_epoch) {
  const Lock lock(mutex);
  joining.erase(rank);
  if (of_epoch != epoch || group.phase() != Phase::Launching) {
    return machinery_->server->end(connection, "the group is not launched any more");
  }
  auto socket = machinery_->server->hand_over(connection);
  auto pair = sys::socket_pair();
  if (!socket || !pair) {
    const Error& why = socket ? pair.error() : socket.error();
    return handle(RankRefused{fmt::format("rank {}: {}", rank, why.message)});
  }
  auto channel = std::make_shared<RankChannel>(
      link::FrameSocket(std::move(*socket), wire::kRankLimits),
      link::FrameSocket(std::move(pair->first), wire::kRankLimits), std::move(pair->second));
  channel->request_mirror = first_mirror;
  channel->sticky_mirror = first_sticky;
  channels.at(static_cast<std::size_t>(rank)) = channel;
  watch_requests(rank);
  machinery_->loop.watch_readable(channel->words.descriptor(), [this, rank] { read_words(rank); });
  handle(RankJoined{rank});
}

void RankGroup::State::send_initialise(int rank) {
  RankChannel& channel = *channels.at(static_cast<std::size_t>(rank));
  const wire::InitialiseRequest first{.components = options.components,
                                      .executor = options.executor,
                                      .rank = rank,
                                      .ranks = options.group.ranks,
                                      .buffers_wanted = rank == 0 || options.all_buffers,
                                      .event_ms = static_cast<int>(std::min<Duration::rep>(
                                          options.group.limits.event.count(), kEventMsMax)),
                                      .context = first_changes};
  const Result<void> sent = channel.requests.send_with_descriptor(
      {.kind = wire::FrameKind::Request, .fields = wire::to_fields(wire::RankRequest(first))},
      channel.their_words.get());
  channel.their_words.close();
  if (channel.requests.unsent() > 0) {
    post([this, each = channels.at(static_cast<std::size_t>(rank))] { flush_requests(each); });
  }
  if (!sent) {
    handle(RankReplied{
        .rank = rank,
        .verdict = {.code = ReturnCode::BadConfig, .why = sent.error().message, .rank = rank}});
  }
}

}  // namespace trainyard::ranks
