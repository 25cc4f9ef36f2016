#include "ranks/rank_process.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <expected>
#include <iterator>
#include <utility>
#include <variant>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/match.h"
#include "link/arena.h"
#include "pipeline/trouble.h"
#include "ranks/context_access.h"
#include "ranks/parcel.h"
#include "trainyard/buffer.h"
#include "trainyard/component.h"
#include "trainyard/shareable.h"
#include "wire/field_reader.h"

namespace trainyard::ranks {
namespace {

constexpr std::size_t kArenasMax = 16;
/// For what runs when the parent is gone. Nobody waits for it.
constexpr Duration kOrphanGrace{5'000};

wire::RankOutcome outcome_of(const pipeline::Trouble& trouble) {
  const ReturnCode code =
      trouble.out_of_memory ? ReturnCode::OutOfMemory : ReturnCode::ExecutionException;
  return {.code = std::string(to_text(code)),
          .message = trouble.message,
          .traceback = trouble.traceback};
}

Shareable without_buffers(const Shareable& result) {
  Shareable rest;
  rest.set_values(result.values());
  for (const auto& [name, value] : result.headers().items()) rest.set_header(name, value);
  return rest;
}

}  // namespace

/// The link of contexts in this process.
class RankProcess::Link final : public detail::RankLink {
 public:
  explicit Link(RankProcess& process) : process_(process) {}
  Result<Buffer> alloc(DType type, Dimensions shape) override {
    return process_.arenas_->alloc(type, std::move(shape));
  }
  EventOutcome fire(RankContext& context, std::string_view event, const Json& data,
                    Audience audience) override {
    return process_.fire(context, event, data, audience);
  }

 private:
  RankProcess& process_;
};

RankProcess::RankProcess(link::FrameSocket requests, const ComponentRegistry& registry,
                         int local_rank)
    : requests_(std::move(requests)),
      registry_(registry),
      local_rank_(local_rank),
      arenas_(std::make_shared<SharedArenas>(link::ArenaPool::Options{.arenas_max = kArenasMax})),
      link_(std::make_shared<Link>(*this)),
      word_base_(request_base_.sibling()) {}

RankProcess::~RankProcess() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
    left_ = true;
    end_asked(ReturnCode::TaskAborted, "the rank ends");
  }
  changed_.notify_all();
  if (words_ != nullptr) words_->shut_down();
  if (reader_.joinable()) reader_.join();
  if (teller_.joinable()) teller_.join();
  // They may still say something while they end.
  components_ = {};
}

// --- requests ---

Result<void> RankProcess::run() {
  while (true) {
    auto frame = requests_.wait_for_frame();
    if (!frame) return std::unexpected(Error{"the parent is gone: " + frame.error().message});
    if (frame->kind == wire::FrameKind::Release) {
      released(*frame);
      continue;
    }
    if (frame->kind == wire::FrameKind::Failure) {
      return std::unexpected(Error{"the parent refused: " + frame->fields});
    }
    auto request = wire::read_rank_request(frame->fields);
    if (!request) return std::unexpected(std::move(request.error()));
    if (std::holds_alternative<wire::CloseRequest>(*request)) return {};
    Result<void> done;
    if (auto* const first = std::get_if<wire::InitialiseRequest>(&*request)) {
      done = initialise(*frame, *first);
    } else {
      done = execute(std::move(*frame), std::get<wire::ExecuteRequest>(std::move(*request)));
    }
    if (!done) return done;
  }
}

void RankProcess::released(const wire::Frame& frame) {
  arenas_->with_pool([&](link::ArenaPool& pool) {
    // One that we did not send is nothing to us.
    [[maybe_unused]] const Result<void> known = requests_.arenas().released(frame.topic, pool);
  });
}

std::stop_token RankProcess::begin_request(std::uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  request_ = sequence;
  stop_ = std::stop_source();
  if (stop_up_to_ && *stop_up_to_ >= sequence) stop_.request_stop();
  return stop_.get_token();
}

Result<void> RankProcess::initialise(const wire::Frame& frame,
                                     const wire::InitialiseRequest& request) {
  auto words = requests_.take_descriptor();
  if (!words) return std::unexpected(std::move(words.error()));
  if (words_ != nullptr) return std::unexpected(Error{"a rank is initialised once"});
  words_ = std::make_unique<link::FrameSocket>(std::move(*words), wire::kRankLimits);
  first_ = request;
  for (RankContext* const base : {&request_base_, &word_base_}) {
    ContextAccess::set_position(
        *base,
        {.rank = request.rank, .local_rank = local_rank_, .ranks = request.ranks, .link = link_});
  }
  ContextAccess::merge(request_base_, request.context);
  // From here on it hears when it is to stop.
  reader_ = std::thread([this] { read_words(); });
  teller_ = std::thread([this] { tell_events(); });
  return reply(frame.sequence, make_components(request));
}

wire::RankReply RankProcess::make_components(const wire::InitialiseRequest& request) {
  wire::RankReply made;
  const std::stop_token stop = begin_request(0);
  try {
    components_ = build_components(request.components, request.executor, registry_, stop);
    for (const auto& each : components_.all) listens_.push_back(each.component->listens_to());
    made.listens = components_.listens_to();
    const std::scoped_lock lock(mutex_);
    components_made_ = true;
  } catch (...) {
    const pipeline::Trouble trouble = pipeline::trouble_of(std::current_exception());
    made.outcome = {.code = std::string(to_text(ReturnCode::InitFailed)),
                    .message = fmt::format("rank {}: {}", request.rank, trouble.message),
                    .traceback = trouble.traceback};
  }
  return made;
}

Result<void> RankProcess::execute(wire::Frame frame, wire::ExecuteRequest request) {
  const std::uint64_t sequence = frame.sequence;
  const std::stop_token stop = begin_request(sequence);
  ContextAccess::merge(request_base_, request.context);
  auto input = unpack(
      std::move(request.payload), std::move(frame),
      [this](const wire::SharedBuffer& place) -> Result<std::shared_ptr<detail::BufferMemory>> {
        auto view = requests_.arenas().view_of(place);
        if (!view) return std::unexpected(std::move(view.error()));
        return std::make_shared<ForeignMemory>(view->bytes, std::move(view->arena));
      });
  if (!input) return std::unexpected(std::move(input.error()));
  wire::RankReply answer;
  wire::Frame reply_frame{.kind = wire::FrameKind::Reply, .sequence = sequence};
  Parcel parcel;
  try {
    RankContext context = ContextAccess::copy(request_base_);
    const Shareable result = components_.executor->execute(request.task, *input, context, stop);
    answer.outcome = {.code = std::string(to_text(result.code())),
                      .message = result.message(),
                      .traceback = result.traceback()};
    if (first_.rank == 0) answer.context = ContextAccess::own_changes(context);
    auto packed =
        first_.buffers_wanted ? pack(result, *arenas_) : pack(without_buffers(result), *arenas_);
    if (packed) {
      parcel = *std::move(packed);
      answer.payload = std::move(parcel.payload);
    } else {
      answer.outcome = {.code = std::string(to_text(ReturnCode::ExecutionResultError)),
                        .message = packed.error().message};
    }
  } catch (...) {
    answer.outcome = outcome_of(pipeline::trouble_of(std::current_exception()));
  }
  if (!input->cookies().empty()) {
    answer.payload.cookies = wire::fields_text(input->cookies());
  }
  if (answer.outcome.code != "ok" && !answer.outcome.message.empty()) {
    answer.outcome.message = fmt::format("rank {}: {}", first_.rank, answer.outcome.message);
  }
  reply_frame.fields = wire::to_fields(answer);
  reply_frame.buffers = std::move(parcel.raw);
  reply_frame.shared = std::move(parcel.shared);
  Result<void> sent =
      arenas_->with_pool([&](link::ArenaPool& pool) { return requests_.send(reply_frame, &pool); });
  if (!sent) {
    return reply(
        sequence,
        {.outcome = {.code = std::string(to_text(ReturnCode::ExecutionResultError)),
                     .message = fmt::format("rank {}: {}", first_.rank, sent.error().message)}});
  }
  return requests_.write_all();
}

Result<void> RankProcess::reply(std::uint64_t sequence, const wire::RankReply& reply) {
  Result<void> sent = requests_.send(
      {.kind = wire::FrameKind::Reply, .sequence = sequence, .fields = wire::to_fields(reply)});
  return sent ? requests_.write_all() : sent;
}

// --- words ---

void RankProcess::read_words() {
  while (true) {
    const auto frame = words_->wait_for_frame();
    if (!frame || !take_word(*frame)) return parent_is_gone();
  }
}

Result<void> RankProcess::take_word(const wire::Frame& frame) {
  auto word = wire::read_rank_word(frame.fields);
  if (!word) return std::unexpected(std::move(word.error()));
  const std::scoped_lock lock(mutex_);
  match(
      *std::move(word),
      [&](wire::EventWord event) {
        told_.push_back({.sequence = frame.sequence, .event = std::move(event)});
      },
      [&](wire::EventDone done) {
        const auto asked = asked_.find(frame.sequence);
        if (asked != asked_.end())
          asked->second = {.over = true, .code = {}, .done = std::move(done)};
      },
      [&](const wire::StopWord&) {
        stop_up_to_ = frame.sequence;
        if (request_ > frame.sequence) return;
        stop_.request_stop();
        // A call that waits for the answer to an event has to end now.
        end_asked(ReturnCode::TaskAborted, "what runs was told to stop");
      });
  changed_.notify_all();
  return {};
}

/// Nothing needs the result of the present request. A program that ignores the SIGTERM that also
/// comes gets the time to save its state.
void RankProcess::parent_is_gone() {
  std::unique_lock lock(mutex_);
  if (over_) return;
  stop_.request_stop();
  over_ = true;
  end_asked(ReturnCode::CommunicationError, "the parent is gone");
  changed_.notify_all();
  // The executing thread finds its own connection closed, and ends the process properly.
  if (!changed_.wait_for(lock, kOrphanGrace, [this] { return left_; })) ::_exit(EXIT_FAILURE);
}

void RankProcess::end_asked(ReturnCode code, const std::string& why) {
  for (auto& [id, asked] : asked_) {
    if (!asked.over) asked = {.over = true, .code = code, .why = why};
  }
}

void RankProcess::tell_events() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || (components_made_ && !told_.empty()); });
    if (over_) return;
    tell_one(lock);
  }
}

void RankProcess::tell_one(std::unique_lock<std::mutex>& lock) {
  const Told next = std::move(told_.front());
  told_.pop_front();
  lock.unlock();
  if (!say(wire::FrameKind::Report, next.sequence, tell(next.event))) {
    // The changes or errors are too long; or the parent is gone, which the reading thread finds
    // out.
    [[maybe_unused]] const Result<void> said =
        say(wire::FrameKind::Report, next.sequence,
            wire::EventDone{.errors = {"what was thrown or changed is too long to be told"}});
  }
  lock.lock();
}

/// The thread that tells events tells others meanwhile: one of them may have to be heard before
/// this one is answered.
bool RankProcess::wait_for_answer(std::unique_lock<std::mutex>& lock, std::uint64_t id) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(first_.event_ms);
  const bool tells = teller_.get_id() == std::this_thread::get_id();
  while (true) {
    const bool something = changed_.wait_until(
        lock, deadline, [&] { return asked_.at(id).over || (tells && !over_ && !told_.empty()); });
    if (asked_.at(id).over) return true;
    if (!something) return false;
    tell_one(lock);
  }
}

wire::EventDone RankProcess::tell(const wire::EventWord& event) {
  ContextAccess::merge(word_base_, event.context);
  RankContext context = ContextAccess::copy(word_base_);
  detail::RankPosition position = ContextAccess::position(context);
  position.from_rank = event.from_rank;
  position.depth = event.depth;
  ContextAccess::set_position(context, std::move(position));
  const Json data =
      event.data.empty() ? Json() : Json::parse(event.data, nullptr, /*allow_exceptions=*/false);
  wire::EventDone done;
  tell_components({.name = event.name, .data = data, .from_rank = event.from_rank}, context,
                  done.errors);
  if (first_.rank == 0) done.context = ContextAccess::own_changes(context);
  return done;
}

void RankProcess::tell_components(const RankEvent& event, RankContext& context,
                                  std::vector<std::string>& errors) {
  for (std::size_t i = 0; i < components_.all.size(); ++i) {
    if (!wire::hears(listens_[i], event.name)) continue;
    try {
      components_.all[i].component->handle_event(event, context);
    } catch (...) {
      errors.push_back(pipeline::full_text_of(std::current_exception()));
    }
  }
}

EventOutcome RankProcess::fire(RankContext& context, std::string_view event, const Json& data,
                               Audience audience) {
  if (auto why_not = refused(event, data)) return *std::move(why_not);
  const detail::RankPosition before = ContextAccess::position(context);
  if (before.depth >= wire::kEventDepthMax) {
    return {.code = ReturnCode::ExecutionException,
            .message = fmt::format("event '{}' is the {}th in reaction to each other: a cycle",
                                   event, wire::kEventDepthMax)};
  }
  EventOutcome outcome;
  detail::RankPosition within = before;
  within.depth = before.depth + 1;
  within.from_rank = first_.rank;
  ContextAccess::set_position(context, within);
  tell_components({.name = event, .data = data, .from_rank = first_.rank}, context, outcome.errors);
  ContextAccess::set_position(context, before);

  std::unique_lock lock(mutex_);
  const std::uint64_t id = ++last_event_;
  asked_.emplace(id, Asked{});
  lock.unlock();
  const Result<void> said =
      say(wire::FrameKind::Report, id,
          wire::EventWord{.name = std::string(event),
                          .data = data.is_null() ? "" : wire::fields_text(data),
                          .context = ContextAccess::own_changes(context),
                          .depth = within.depth,
                          .to_group = audience == Audience::Group});
  lock.lock();
  const bool heard = !said || wait_for_answer(lock, id);
  const Asked asked = std::move(asked_.extract(id).mapped());
  lock.unlock();
  if (asked.code != ReturnCode::Ok) {
    outcome.code = asked.code;
    outcome.message = fmt::format("event '{}': {}", event, asked.why);
    return outcome;
  }
  if (!said) {
    outcome.code = ReturnCode::CommunicationError;
    outcome.message = fmt::format("event '{}': {}", event, said.error().message);
    return outcome;
  }
  if (!heard) {
    outcome.code = ReturnCode::Timeout;
    outcome.message = fmt::format("event '{}' was not heard within {} ms (limit 'event')", event,
                                  first_.event_ms);
    return outcome;
  }
  std::ranges::copy(asked.done.errors, std::back_inserter(outcome.errors));
  ContextAccess::merge(context, asked.done.context);
  return outcome;
}

Result<void> RankProcess::say(wire::FrameKind kind, std::uint64_t sequence,
                              const wire::RankWord& word) {
  const std::scoped_lock lock(saying_);
  Result<void> said =
      words_->send({.kind = kind, .sequence = sequence, .fields = wire::to_fields(word)});
  return said ? words_->write_all() : said;
}

}  // namespace trainyard::ranks
