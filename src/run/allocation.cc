#include "run/allocation.h"

#include <algorithm>
#include <expected>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"

namespace trainyard::run {
namespace {

constexpr std::size_t kNumberMax = 20;
constexpr std::size_t kNameMax = 255;

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

bool is_allocation(std::string_view word) {
  return !word.empty() && word.size() <= kNumberMax && std::ranges::all_of(word, is_digit);
}

/// True for a valid name of a node. The name becomes a word of a command.
bool is_node(std::string_view word) {
  const auto may_be_there = [](char byte) {
    return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           byte == '-' || byte == '_' || byte == '.';
  };
  return !word.empty() && word.size() <= kNameMax && !word.starts_with('-') &&
         std::ranges::all_of(word, may_be_there);
}

/// The names of all nodes that there may be.
constexpr std::size_t kLineMax = std::size_t{1} << 20;
/// Interval for reading the program's messages for users.
constexpr Duration kLookEvery{500};
constexpr Duration kGiveBackMax{5'000};
constexpr Duration kEndingMax{1'000};

/// Several lines as one, without the name of the program before each.
std::string in_one_line(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    for (const std::string_view speaker : {"salloc: ", "error: "}) {
      if (line.starts_with(speaker)) line.remove_prefix(speaker.size());
    }
    if (!line.empty()) all += fmt::format("{}{}", all.empty() ? "" : "; ", line);
  }
  return all;
}

}  // namespace

Result<GrantedNodes> granted_nodes(std::string_view line) {
  std::vector<std::string_view> words;
  for (const auto word : std::views::split(line, ' ')) {
    if (!word.empty()) words.emplace_back(word.begin(), word.end());
  }
  constexpr std::size_t kLeast = 3;
  const bool is_one = words.size() >= kLeast && words.size() - 2 <= kNodesMax &&
                      is_allocation(words[0]) &&
                      std::all_of(words.begin() + 2, words.end(), is_node);
  if (!is_one) {
    return std::unexpected(Error{fmt::format("'{}' names no nodes", line.substr(0, kNameMax))});
  }
  GrantedNodes granted{.allocation = std::string(words[0]), .left = {}, .nodes = {}};
  if (const Result<Duration> left = parse_slurm_time(words[1])) granted.left = *left;
  granted.nodes.assign(words.begin() + 2, words.end());
  std::ranges::sort(granted.nodes);
  const auto twice = std::ranges::unique(granted.nodes);
  granted.nodes.erase(twice.begin(), twice.end());
  return granted;
}

Allocation::Allocation(sys::EventLoop& loop, Options options, Ears ears)
    : loop_(loop), options_(std::move(options)), ears_(std::move(ears)) {}

Allocation::~Allocation() {
  if (timer_) loop_.cancel(*timer_);
  const bool is_held = phase_ == Phase::Granted;
  stream_.reset();
  if (!program_ || phase_ > Phase::Granted) return;
  if (!is_held) program_->terminate();
  static_cast<void>(program_->exit_code(kGiveBackMax));
}

void Allocation::ask() {
  const Result<void> started = listen_to(
      options_.ask, [this](std::string_view line) { hear(line); },
      [this](const std::string& why) { end(why); });
  if (!started) return end(started.error().message);
  plan_to_tell();
}

void Allocation::give_back() {
  if (phase_ != Phase::Granted) return;
  stream_.reset();
  end("it was given back");
}

Result<void> Allocation::listen_to(const std::vector<std::string>& words,
                                   sys::LineStream::OnLine on_line, sys::LineStream::OnEnd on_end) {
  Result<sys::StreamProgram> program = sys::StreamProgram::start(words);
  if (!program) return std::unexpected(std::move(program.error()));
  program_.emplace(std::move(*program));
  stream_ = std::make_unique<sys::LineStream>(
      loop_, program_->take_stream(),
      sys::LineStream::Options{
          .line_max = kLineMax, .on_line = std::move(on_line), .on_end = std::move(on_end)});
  return {};
}

void Allocation::plan_to_tell() {
  timer_ = loop_.after(kLookEvery, [this] {
    tell_what_it_says();
    plan_to_tell();
  });
}

/// While it is asked for: "Pending job allocation 12".
void Allocation::tell_what_it_says() {
  if (phase_ != Phase::Asked || !program_) return;
  const std::string all = program_->last_errors();
  if (all.size() <= told_) return;
  const std::string line = in_one_line(std::string_view(all).substr(told_));
  told_ = all.size();
  if (!line.empty()) ears_.said(line);
}

void Allocation::hear(std::string_view line) {
  if (phase_ != Phase::Asked) return;
  Result<GrantedNodes> granted = granted_nodes(line);
  if (!granted) return end(granted.error().message);
  phase_ = Phase::Granted;
  nodes_ = std::move(*granted);
  if (program_) told_ = program_->last_errors().size();
  ears_.granted(*nodes_);
}

void Allocation::end(const std::string& why) {
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
  stream_.reset();
  std::string said = why;
  if (program_) {
    // The program closes its descriptors a moment before it has exited.
    if (!program_->exit_code(kEndingMax)) {
      program_->terminate();
      static_cast<void>(program_->exit_code(kGiveBackMax));
    }
    const std::string all = program_->last_errors();
    const std::string last = in_one_line(std::string_view(all).substr(std::min(told_, all.size())));
    if (!last.empty()) said = last;
    program_.reset();
  }
  phase_ = Phase::Ended;
  if (nodes_) see_to_the_end(nodes_->allocation);
  ears_.ended(said);
}

/// If the end cannot be seen, the attempts that ran there have their lease.
void Allocation::see_to_the_end(const std::string& number) {
  static_cast<void>(listen_to(
      options_.see_its_end(number),
      [this, number](std::string_view) {
        if (std::exchange(phase_, Phase::Over) != Phase::Over) ears_.over(number);
      },
      [this](const std::string&) { stream_.reset(); }));
}

}  // namespace trainyard::run
