#include "run/printed_metrics.h"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace trainyard::run {
namespace {

/// A progress bar ends its lines with the first, all else with the second. If a log was cut while a
/// program writes it, NULs fill the place of the old text.
constexpr std::string_view kLineEnds{"\r\n\0", 3};

}  // namespace

PrintedMetrics::PrintedMetrics(const std::vector<std::string>& logs, LinePattern pattern)
    : pattern_(std::move(pattern)) {
  for (const std::string& path : logs) {
    logs_.push_back({.tail = sys::Tail(path), .half = {}, .too_long = false});
  }
}

std::size_t PrintedMetrics::look(std::size_t bytes_max) {
  std::size_t read = 0;
  for (Log& log : logs_) read += look(log, bytes_max);
  return read;
}

std::size_t PrintedMetrics::look(Log& log, std::size_t bytes_max) {
  constexpr auto kMost = static_cast<std::int64_t>(kOfALogMax);
  const sys::Tail::Unread unread = log.tail.unread();
  if (unread.anew) {
    skipped_ = true;
    log.half.clear();
    log.too_long = false;
  }
  if (unread.bytes > kMost) {
    log.tail.skip(unread.bytes - kMost);
    skipped_ = true;
    // The position of that in a line is not known.
    log.half.clear();
    log.too_long = true;
  }
  std::size_t read = 0;
  for (std::int64_t left = unread.bytes; left > 0 && read < bytes_max;) {
    const Result<std::string> piece = log.tail.read_more();
    if (!piece || piece->empty()) break;
    read += piece->size();
    left -= static_cast<std::int64_t>(piece->size());
    take(log, *piece);
  }
  return read;
}

void PrintedMetrics::take(Log& log, std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find_first_of(kLineEnds);
    const std::string_view part = piece.substr(0, end);
    if (log.half.size() + part.size() > wire::kMetricLineMax) {
      log.too_long = true;
      log.half.clear();
    }
    if (!log.too_long) log.half += part;
    if (end == std::string_view::npos) return;
    end_line(log);
    piece.remove_prefix(end + 1);
  }
}

void PrintedMetrics::end_line(Log& log) {
  const bool passed_over = std::exchange(log.too_long, false) || log.half.empty();
  if (!passed_over) read_line(log.half);
  log.half.clear();
}

void PrintedMetrics::read_line(std::string_view line) {
  if (add(wire::read_metric_line(line), printed_) || !pattern_) return;
  if (add(pattern_(line), matched_)) found_ = true;
}

bool PrintedMetrics::add(wire::MetricLine line, Mistakes& mistakes) {
  for (const wire::Metric& metric : line.metrics) last_.add(metric);
  if (!line.mistake.empty() && mistakes.lines++ == 0) mistakes.first = std::move(line.mistake);
  return !line.metrics.empty();
}

std::string PrintedMetrics::warning(bool succeeded) const {
  const auto others = [](const Mistakes& mistakes) {
    return mistakes.lines > 1 ? fmt::format(" (and {} more)", mistakes.lines - 1) : "";
  };
  std::string text;
  if (printed_.lines > 0) {
    text = fmt::format("printed metric '{}' is not valid{}: write NAME=NUMBER", printed_.first,
                       others(printed_));
  }
  const std::string_view between = text.empty() ? "" : "; ";
  if (matched_.lines > 0) {
    text += fmt::format("{}the pattern of 'metrics' found '{}', which is not a number{}", between,
                        matched_.first, others(matched_));
  } else if (succeeded && pattern_ && !found_ && !skipped_) {
    text += fmt::format("{}the pattern of 'metrics' found no number in the output", between);
  }
  return text;
}

void PrintedMetrics::finish() {
  for (Log& log : logs_) {
    look(log, kOfALogMax);
    end_line(log);
  }
}

}  // namespace trainyard::run
