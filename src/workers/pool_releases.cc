#include "workers/pool_releases.h"

#include <cstddef>
#include <expected>
#include <span>

namespace trainyard::workers {

class PoolReleases::Lease final : public detail::BufferMemory {
 public:
  Lease(std::shared_ptr<PoolReleases> releases, Release release,
        link::ArenaExchange::SharedView view)
      : releases_(std::move(releases)), release_(release), view_(std::move(view)) {}
  Lease(Lease&&) = delete;
  Lease& operator=(Lease&&) = delete;
  ~Lease() override { releases_->add(release_); }
  [[nodiscard]] std::span<const std::byte> bytes() const override { return view_.bytes; }

 private:
  std::shared_ptr<PoolReleases> releases_;
  Release release_;
  link::ArenaExchange::SharedView view_;
};

Result<std::shared_ptr<detail::BufferMemory>> PoolReleases::open(std::uint64_t connection,
                                                                 const wire::SharedBuffer& buffer,
                                                                 link::ArenaExchange& arenas) {
  auto view = arenas.view_of(buffer);
  if (!view) return std::unexpected(std::move(view.error()));
  return std::make_shared<Lease>(shared_from_this(),
                                 Release{.connection = connection, .arena = buffer.arena},
                                 *std::move(view));
}

std::vector<PoolReleases::Release> PoolReleases::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(gathered_, {});
}

void PoolReleases::add(Release release) {
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    first = gathered_.empty();
    gathered_.push_back(release);
  }
  if (first && on_first_) on_first_();
}

}  // namespace trainyard::workers
