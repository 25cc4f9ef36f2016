// The promises of all yards of a machine: a directory in memory with a file each, which only its
// owner writes. It needs no server. The directory is root's, so that no user can close it or take
// away the files of others.
//
// A yard holds a lock on its own file for life, and hands the descriptor on to guard and keeper. So
// the lock is held as long as any of its tasks may live, however its processes end, and a held lock
// shows across users and namespaces that the yard is alive. A file without a lock counts for
// nothing; its owner's next yard deletes it.
//
// The files of others are read within limits, and each counts for its owner alone, as the file
// system reports it. A file that cannot be read is reported once for each user. All this takes
// microseconds, as the files are in memory.
//
// One thread, and before the keeper is forked: open().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/promises.h"
#include "sys/descriptor.h"

namespace trainyard::process {

class PromiseBoard {
 public:
  /// Number of files of one user that are read, the oldest: no user can hide the files of another.
  static constexpr std::size_t kFilesOfUserMax = 32;
  /// Number of files that are read, of all users. The oldest file of every user comes first.
  static constexpr std::size_t kFilesMax = 256;
  /// The number of times that a file is read again while it is being written.
  static constexpr int kReadsMax = 4;

  /// The directories to use: $TRAINYARD_PROMISES alone if it is set ("off": none, no yard sees
  /// another), else in the memory of this machine.
  static std::vector<std::string> usual_directories();

  /// Makes a file in the first of these directories where that can be done. An error says of each
  /// why not.
  static Result<PromiseBoard> open(const std::vector<std::string>& directories);

  /// The content of all these directories, for a process that promises nothing: it writes nothing,
  /// and is no neighbour of any yard.
  struct Other {
    std::uint32_t user = 0;
    bool is_ours = false;   ///< The user is ours.
    std::string user_name;  ///< Empty where the number has no name.
    model::Promises promises;
  };
  static std::vector<Other> look_at(const std::vector<std::string>& directories);

  PromiseBoard(PromiseBoard&&) noexcept = default;
  PromiseBoard& operator=(PromiseBoard&&) = delete;
  /// Removes the file of this yard, which then reserves nothing. Call it once guard and keeper have
  /// ended. In a fork of this process the file stays.
  ~PromiseBoard();

  /// Descriptor of this yard's file, for guard and keeper to keep open.
  [[nodiscard]] int descriptor() const { return file_.get(); }
  [[nodiscard]] const std::string& ticket() const { return ticket_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] std::string path() const { return path_in(directory_, ticket_); }

  /// Replaces our promises from now on.
  void write(const model::Promises& promises);

  /// The content of the files of the other live yards, by ticket. Makes ours again if it was
  /// deleted, as by a cleanup of the files of users that have logged out.
  std::vector<Other> read();

  /// Lets others write what they are about to.
  static void let_others_go_on();

  /// Notes for users, each once.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  /// A regular file in the directory, known without opening it.
  struct Entry {
    std::string ticket;  ///< In its name.
    std::uint32_t user = 0;
    std::uint64_t inode = 0;
    std::size_t place = 0;  ///< Number of older files of the same user.
  };
  struct Known {
    sys::Descriptor file;
    std::uint32_t user = 0;
    std::uint64_t inode = 0;
    std::int64_t made_unix_s = 0;         ///< Creation of the file: no wait began earlier.
    std::optional<model::Promises> last;  ///< The last reservations that could be read,
    std::string last_seal;                ///< and the line that sealed them.
  };

  PromiseBoard(std::string directory, std::string ticket, sys::Descriptor file);

  static std::string path_in(const std::string& directory, const std::string& ticket);
  static Result<PromiseBoard> open_in(const std::string& directory);
  static Result<sys::Descriptor> make_file(const std::string& being_made);
  void make_again();
  static Result<std::vector<Entry>> entries_of(const std::string& directory);
  void remove_what_is_left() const;
  void follow_directory();
  std::vector<Entry> within_limits(std::vector<Entry> entries);
  void open_other(const Entry& entry);
  std::optional<model::Promises> read_other(const std::string& ticket, Known& known);
  void note_once(std::uint32_t user, const std::string& ticket, const std::string& why);
  const std::string& name_of(std::uint32_t user);
  std::string shown_user(std::uint32_t user);

  std::string directory_;
  std::string ticket_;
  sys::Descriptor file_;  ///< Closed when it has been moved elsewhere.
  /// The file that guard and keeper hold, if it was deleted and replaced.
  sys::Descriptor deleted_;
  model::Promises said_;  ///< Our promises.
  std::int64_t owner_;    ///< Our process.
  std::uint64_t sequence_ = 0;
  bool write_failed_ = false;
  bool too_many_ = false;
  bool directory_failed_ = false;
  std::map<std::string, Known> known_;               ///< By ticket.
  std::map<std::uint32_t, std::string> user_names_;  ///< Each is looked up once.
  std::set<std::uint32_t> noted_;                    ///< Users whose files are in a note.
  std::vector<std::string> notes_;
};

}  // namespace trainyard::process
