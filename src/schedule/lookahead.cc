#include "schedule/lookahead.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "schedule/card_shares.h"
#include "schedule/gpu_room.h"

namespace trainyard::schedule {
namespace {

using Order = std::vector<std::uint32_t>;
constexpr Duration kNever = Duration::max();
/// With how many loaded ahead the rules are tried.
constexpr std::array<int, 5> kAhead{40, 20, 12, 8, 5};

/// Numbers that look random, the same every time.
class Dice {
 public:
  std::uint32_t below(std::size_t count) {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return static_cast<std::uint32_t>(state_ % count);
  }

 private:
  std::uint64_t state_ = 0x9E3779B97F4A7C15U;
};

/// One run, played from its beginning. Used for one order after the other.
class Play {
 public:
  Play(const std::vector<Prospect>& prospects, const Stock& stock)
      : prospects_(prospects), stock_(stock) {
    least_memory_ = Bytes{std::numeric_limits<std::int64_t>::max()};
    for (const Prospect& it : prospects) {
      least_memory_ = std::min(least_memory_, it.request.memory);
      slows_ = slows_ || it.gpu_share > 0;
    }
  }

  /// The duration of the run; kNever as soon as it is known to take longer than `limit`.
  Duration run(const Order& order, int ahead_max, Duration limit);

 private:
  enum class Kind : std::uint8_t { Loaded, Trained };
  struct Happening {
    Duration at;
    Kind kind;
    std::uint32_t task;
    friend auto operator<=>(const Happening&, const Happening&) = default;
  };
  struct Card {
    Bytes free;
    Sharers sharers;
  };

  bool place(std::uint32_t task);
  [[nodiscard]] bool is_before(std::size_t card, std::size_t other, bool idle_first) const;
  void leave(std::uint32_t task);
  void begin_to_train(std::uint32_t task, Duration work);
  void time_anew(const std::vector<CardShares::Timed>& timed);
  [[nodiscard]] bool is_past(const Happening& it) const;
  void start_waiting(int ahead_max);
  bool train_loaded();

  const std::vector<Prospect>& prospects_;
  const Stock& stock_;
  Bytes least_memory_;
  bool slows_ = false;  ///< Some are slower when they share their cards.

  Duration now_{0};
  Bytes memory_;
  model::Cpus cpus_;
  int ahead_ = 0;
  std::vector<Card> cards_;
  std::size_t cards_in_use_ = 0;
  std::size_t whole_waiting_ = 0;     ///< Tasks that could start but for a whole card.
  std::optional<CardShares> shares_;  ///< Set if some go slower.
  Order waiting_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> loaded_;  ///< Turn, task; in order.
  std::vector<std::uint32_t> position_;                          ///< By task.
  std::vector<std::vector<std::uint32_t>> cards_of_;             ///< By task.
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> agenda_;
};

Duration Play::run(const Order& order, int ahead_max, Duration limit) {
  now_ = Duration{0};
  memory_ = stock_.memory;
  cpus_ = stock_.cpus;
  ahead_ = 0;
  cards_.assign(stock_.gpus.size(), {});
  for (std::size_t i = 0; i < cards_.size(); ++i) cards_[i].free = stock_.gpus[i];
  if (slows_) shares_.emplace(cards_.size());
  waiting_ = order;
  loaded_.clear();
  position_.resize(prospects_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
  cards_of_.assign(prospects_.size(), {});
  cards_in_use_ = 0;
  whole_waiting_ = 0;
  for (const Prospect& it : prospects_) {
    if (!it.two_phase && model::wants_whole_gpus(it.request)) ++whole_waiting_;
  }
  agenda_ = {};
  while (true) {
    do {
      start_waiting(ahead_max);
    } while (train_loaded());
    if (agenda_.empty()) return waiting_.empty() && loaded_.empty() ? now_ : kNever;
    const Happening next = agenda_.top();
    agenda_.pop();
    if (is_past(next)) continue;
    now_ = next.at;
    // Most orders are worse than the best so far, and are given up here half-way.
    if (now_ > limit) return kNever;
    if (next.kind == Kind::Loaded) {
      const std::pair place{position_[next.task], next.task};
      loaded_.insert(std::ranges::upper_bound(loaded_, place), place);
      if (model::wants_whole_gpus(prospects_[next.task].request)) ++whole_waiting_;
    } else {
      leave(next.task);
    }
  }
}

bool Play::is_before(std::size_t card, std::size_t other, bool idle_first) const {
  const bool is_idle = cards_[card].sharers.tasks() == 0;
  if (idle_first && is_idle != (cards_[other].sharers.tasks() == 0)) return is_idle;
  return cards_[card].free < cards_[other].free;
}

/// Gives it its CPUs and the cards that the strategy says: idle ones, or those with the least room
/// left; false when they are not free.
bool Play::place(std::uint32_t task) {
  const model::Request& request = prospects_[task].request;
  if (request.cpus > cpus_) return false;
  std::vector<std::uint32_t>& chosen = cards_of_[task];
  chosen.clear();
  const bool whole = model::wants_whole_gpus(request);
  std::size_t in_use = cards_in_use_;
  for (int count = 0; count < request.gpus; ++count) {
    std::size_t best = cards_.size();
    const bool idle_first = !whole && whole_waiting_ == 0 && in_use < stock_.spread_max;
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      const bool wished = !request.gpu || request.gpu->value == i;
      const Sharers& sharers = cards_[i].sharers;
      const bool fits = whole ? sharers.tasks() == 0
                              : request.gpu_memory <= cards_[i].free &&
                                    sharers.admit(request.sharing, stock_.gpu_utilization_max);
      const bool fresh = std::ranges::find(chosen, i) == chosen.end();
      if (!wished || !fits || !fresh) continue;
      if (best == cards_.size() || is_before(i, best, idle_first)) best = i;
    }
    if (best == cards_.size()) return false;
    if (cards_[best].sharers.tasks() == 0) ++in_use;
    chosen.push_back(static_cast<std::uint32_t>(best));
  }
  for (const std::uint32_t card : chosen) {
    cards_[card].sharers.add(request.sharing);
    // A task that has a GPU for itself leaves nothing of it.
    cards_[card].free -= whole ? stock_.gpus[card] : request.gpu_memory;
  }
  cards_in_use_ = in_use;
  if (whole) --whole_waiting_;
  cpus_ = cpus_ - request.cpus;
  return true;
}

void Play::leave(std::uint32_t task) {
  if (shares_ && !cards_of_[task].empty()) time_anew(shares_->leave(task, now_));
  const model::Request& request = prospects_[task].request;
  memory_ += request.memory;
  cpus_ = cpus_ + request.cpus;
  for (const std::uint32_t card : cards_of_[task]) {
    cards_[card].sharers.remove(request.sharing);
    if (cards_[card].sharers.tasks() == 0) --cards_in_use_;
    cards_[card].free += request.gpu_memory == Bytes{} ? stock_.gpus[card] : request.gpu_memory;
  }
}

void Play::begin_to_train(std::uint32_t task, Duration work) {
  if (shares_ && !cards_of_[task].empty()) {
    return time_anew(shares_->begin(task, cards_of_[task], prospects_[task].gpu_share, work, now_));
  }
  agenda_.push({.at = now_ + work, .kind = Kind::Trained, .task = task});
}

void Play::time_anew(const std::vector<CardShares::Timed>& timed) {
  for (const CardShares::Timed& it : timed) {
    agenda_.push({.at = it.ends, .kind = Kind::Trained, .task = it.task});
  }
}

/// True if the task of this entry now ends at another time.
bool Play::is_past(const Happening& it) const {
  if (!shares_ || it.kind != Kind::Trained || cards_of_[it.task].empty()) return false;
  return shares_->end_of(it.task) != it.at;
}

void Play::start_waiting(int ahead_max) {
  if (memory_ < least_memory_) return;
  std::erase_if(waiting_, [&](std::uint32_t task) {
    const Prospect& it = prospects_[task];
    const bool may = it.request.memory <= memory_ && (!it.two_phase || ahead_ < ahead_max);
    if (!may || (!it.two_phase && !place(task))) return false;
    memory_ -= it.request.memory;
    if (it.two_phase) {
      ++ahead_;
      agenda_.push({.at = now_ + it.load, .kind = Kind::Loaded, .task = task});
    } else {
      begin_to_train(task, it.load + it.train);
    }
    return true;
  });
}

/// True when one began to train, so that another may be loaded.
bool Play::train_loaded() {
  const auto began = std::erase_if(loaded_, [this](const auto& it) {
    if (!place(it.second)) return false;
    --ahead_;
    begin_to_train(it.second, prospects_[it.second].train);
    return true;
  });
  return began > 0;
}

/// The share of all resources that a task takes.
struct Share {
  double memory = 0;
  double gpus = 0;
};

std::vector<Share> shares_of(const std::vector<Prospect>& prospects, const Stock& stock) {
  Bytes all_gpus;
  for (const Bytes gpu : stock.gpus) all_gpus += gpu;
  std::vector<Share> shares;
  shares.reserve(prospects.size());
  for (const Prospect& it : prospects) {
    const model::Request& request = it.request;
    Bytes gpu{request.gpu_memory.count * request.gpus};
    if (request.gpus > 0 && gpu == Bytes{}) {
      gpu = Bytes{all_gpus.count / static_cast<std::int64_t>(stock.gpus.size()) * request.gpus};
    }
    const auto whole = [](Bytes of) {
      return static_cast<double>(std::max<std::int64_t>(of.count, 1));
    };
    shares.push_back(
        {.memory = std::max(static_cast<double>(request.memory.count) / whole(stock.memory),
                            static_cast<double>(request.cpus.milli) /
                                static_cast<double>(std::max<std::int64_t>(stock.cpus.milli, 1))),
         .gpus = static_cast<double>(gpu.count) / whole(all_gpus)});
  }
  return shares;
}

/// The orders that are tried first: the largest first, by five ways to say what is large.
std::vector<Order> rules(const std::vector<Prospect>& prospects, const Stock& stock) {
  const std::vector<Share> shares = shares_of(prospects, stock);
  constexpr std::size_t kRules = 5;
  std::vector<std::array<double, kRules>> sizes(prospects.size());
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    const auto train = static_cast<double>(prospects[i].train.count());
    const auto all = static_cast<double>((prospects[i].load + prospects[i].train).count());
    const Share& share = shares[i];
    sizes[i] = {train, train * share.gpus, all * share.memory,
                std::max(train * share.gpus, all * share.memory),
                train * (share.gpus + share.memory)};
  }
  std::vector<Order> orders;
  for (std::size_t rule = 0; rule < kRules; ++rule) {
    Order order(prospects.size());
    std::ranges::generate(order, [next = 0U]() mutable { return next++; });
    std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      const double of_a = sizes[a].at(rule);
      const double of_b = sizes[b].at(rule);
      return of_a != of_b ? of_a > of_b : a < b;
    });
    orders.push_back(std::move(order));
  }
  return orders;
}

/// Changes an order a little: swaps two, or moves one.
void shuffle(Order& order, Dice& dice) {
  constexpr std::array<int, 4> kChanges{1, 1, 2, 4};
  for (int changes = kChanges.at(dice.below(kChanges.size())); changes > 0; --changes) {
    const std::uint32_t a = dice.below(order.size());
    const std::uint32_t b = dice.below(order.size());
    if (dice.below(2) == 0) {
      std::swap(order[a], order[b]);
    } else if (a < b) {
      std::rotate(order.begin() + a, order.begin() + a + 1, order.begin() + b + 1);
    } else {
      std::rotate(order.begin() + b, order.begin() + a, order.begin() + a + 1);
    }
  }
}

}  // namespace

Duration shortest_possible(const std::vector<Prospect>& prospects, const Stock& stock) {
  const std::vector<Share> shares = shares_of(prospects, stock);
  double longest = 0;
  double memory = 0;
  double gpus = 0;
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    const auto train = static_cast<double>(prospects[i].train.count());
    const auto all = train + static_cast<double>(prospects[i].load.count());
    longest = std::max(longest, all);
    memory += all * shares[i].memory;
    gpus += train * shares[i].gpus;
  }
  return Duration{static_cast<std::int64_t>(std::max({longest, memory, gpus}))};
}

struct LookAhead::Search {
  Search(std::vector<Prospect> the_prospects, Stock the_stock, int the_runs_max)
      : prospects(std::move(the_prospects)),
        stock(std::move(the_stock)),
        runs_max(the_runs_max),
        // So near to what is possible is near enough.
        good(shortest_possible(prospects, stock) * 101 / 100),
        orders(rules(prospects, stock)),
        play(prospects, stock) {
    best = {.order = {}, .ahead_max = kAhead.front(), .makespan = kNever};
  }

  [[nodiscard]] bool by_rules() const { return rule < kAhead.size() * orders.size(); }
  [[nodiscard]] bool is_done() const {
    return best.runs >= runs_max || best.makespan <= good || (!by_rules() && prospects.size() <= 1);
  }
  bool play_one();
  bool try_a_rule();
  bool try_a_change();

  std::vector<Prospect> prospects;
  Stock stock;
  int runs_max;
  Duration good;
  std::vector<Order> orders;  ///< The orders by the rules.
  std::size_t rule = 0;       ///< The next of them to try, and the next length of the queue.
  Play play;
  Dice dice;
  Foresight best;
};

bool LookAhead::Search::play_one() {
  ++best.runs;
  return by_rules() ? try_a_rule() : try_a_change();
}

bool LookAhead::Search::try_a_rule() {
  const Order& order = orders[rule % orders.size()];
  const int ahead = kAhead.at(rule / orders.size());
  ++rule;
  // Only a shorter run is taken: of rules that come to the same the first one counts.
  const Duration limit = best.makespan == kNever ? kNever : best.makespan - Duration{1};
  const Duration took = play.run(order, ahead, limit);
  if (took >= best.makespan && !best.order.empty()) return false;
  best = {.order = order, .ahead_max = ahead, .makespan = took, .runs = best.runs};
  return true;
}

bool LookAhead::Search::try_a_change() {
  Order order = best.order;
  int ahead = best.ahead_max;
  shuffle(order, dice);
  // Now and then how many are loaded ahead is changed as well.
  if (dice.below(20) == 0) ahead = std::max(2, ahead + static_cast<int>(dice.below(5)) - 2);
  const Duration took = play.run(order, ahead, best.makespan);
  // An equal order is taken, too: there may be a better one behind it.
  if (took > best.makespan || took == kNever) return false;
  const bool better = took < best.makespan;
  best = {.order = std::move(order), .ahead_max = ahead, .makespan = took, .runs = best.runs};
  return better;
}

LookAhead::LookAhead(std::vector<Prospect> prospects, Stock stock, int runs_max)
    : search_(std::make_unique<Search>(std::move(prospects), std::move(stock), runs_max)) {}
LookAhead::LookAhead(LookAhead&&) noexcept = default;
LookAhead& LookAhead::operator=(LookAhead&&) noexcept = default;
LookAhead::~LookAhead() = default;

bool LookAhead::go_on(int runs) {
  bool better = false;
  for (; runs > 0 && !search_->is_done(); --runs) better = search_->play_one() || better;
  return better;
}

bool LookAhead::is_done() const { return search_->is_done(); }
const Foresight& LookAhead::best() const { return search_->best; }

Foresight look_ahead(const std::vector<Prospect>& prospects, const Stock& stock, int runs_max) {
  LookAhead search(prospects, stock, runs_max);
  search.go_on(runs_max);
  return search.best();
}

}  // namespace trainyard::schedule
