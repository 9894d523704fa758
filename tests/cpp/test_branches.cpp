// No branch and no address of a clip kernel depends on the numbers of ordinary rows: the rows
// are declared undefined to Valgrind's memcheck, which then counts each branch and address that
// is made of them. Allowed is one branch for each test for exceptional rows, whose answer is no.
// (Valgrind runs no AVX-512: that target is left to its likeness with the others.)
#include <valgrind/memcheck.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "clip/clip.hpp"
#include "clip/clip_sum.hpp"

using namespace ellipsum;

namespace {

constexpr unsigned rows_in_test = 33;  // groups, and one row alone
// Of more than eight columns also several blocks (runs of up to a page), a short one, and a slab of eight rows.
constexpr unsigned rows_in_blocks = 4 * 512 + 64 + 8;

struct Case {
  Task task;
  std::size_t d;
  bool matrix, columns;
  std::size_t rank;  // beside the scale
  bool moved;        // cells into a box, first
  std::size_t rows = rows_in_test;
  Form form = Form::ellipsoid;
};

// Branches and addresses made of the rows' numbers, each time that they are taken.
template <class T> unsigned dependences(const Choice& kernels, const Case& c) {
  std::vector<T> rows(c.rows * c.d);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = T(int(i * 37 % 101) - 50) / 25;
  const std::vector<double> center(c.d, c.form == Form::ball_at_zero ? 0.0 : 0.1),
      matrix(c.d * c.d, 0x1p20), factors(2 * c.d * c.rank, 0.5), lower(c.d, -1.0), upper(c.d, 1.0);
  const std::vector<double> edges{0x1p21, 0x1p23, 0x1p25};
  std::vector<double> scale(c.d, 0x1p22);
  if (c.form == Form::ellipsoid) scale.back() = 0x1p21;
  Region region{};
  region.task = c.task;
  region.d = c.d;
  region.center = center.data();
  (c.matrix ? region.matrix : region.scale) = c.matrix ? matrix.data() : scale.data();
  region.limit = c.task == Task::box ? scale.data() : nullptr;
  region.radius = 0x1p23;
  region.edges = edges.data();
  region.bins = edges.size();
  region.rank = c.rank;
  region.factors = factors.data();
  if (c.moved) region.lower = lower.data(), region.upper = upper.data();
  const Batch batch{rows.data(),
                    sizeof(T) == 4 ? Dtype::float32 : Dtype::float64,
                    c.rows,
                    c.d,
                    std::ptrdiff_t((c.columns ? 1 : c.d) * sizeof(T)),
                    std::ptrdiff_t((c.columns ? c.rows : 1) * sizeof(T))};
  std::vector<std::int64_t> partial(compiled_once::sums_of(region));
  (void)VALGRIND_MAKE_MEM_UNDEFINED(rows.data(), rows.size() * sizeof(T));
  const unsigned before = VALGRIND_COUNT_ERRORS;
  clip_sum(kernels, batch, region, partial.data(), 1);
  return VALGRIND_COUNT_ERRORS - before;
}

// Bytes of a column in a block of the arrangement "target:name".
std::size_t run_of(const Choice& kernels, const std::string& name) {
  const ArrangementList all = column_arrangements(kernels.kernels());
  const std::string own = name.substr(name.find(':') + 1);
  return std::find_if(all.first, all.first + all.count,
                      [&](const Arrangement& each) { return own == each.name; })
      ->run;
}

// A block is tested once, what is left over as a slab is.
int blocks_of_columns(const Choice& kernels, const std::string& name) {
  int failures = 0;
  const std::size_t run = run_of(kernels, name);
  const auto expected = [&](std::size_t size) {
    const std::size_t whole =
                          rows_in_blocks / compiled_once::block_step * compiled_once::block_step,
                      rows = run / size;
    return unsigned((whole + rows - 1) / rows + 1);
  };
  for (Task task : {Task::ball, Task::box, Task::halves, Task::distances})
    for (std::size_t at = 0; at < 4; ++at) {
      const std::size_t d = at % 2 ? 20 : 9;
      const Form form = at < 2 ? Form::ellipsoid : at == 2 ? Form::ball : Form::ball_at_zero;
      const Case c{task, d, false, true, 0, false, rows_in_blocks, form};
      const unsigned found[] = {dependences<float>(kernels, c), dependences<double>(kernels, c)};
      const unsigned wanted[] = {expected(sizeof(float)), expected(sizeof(double))};
      if (found[0] == wanted[0] && found[1] == wanted[1]) continue;
      ++failures;
      std::printf("FAILED: %u and %u branches or addresses, not %u and %u (%s, task %d, d = %zu)\n",
                  found[0], found[1], wanted[0], wanted[1], name.c_str(), int(task), d);
    }
  return failures;
}

}  // namespace

int main() {
  if (!RUNNING_ON_VALGRIND) return std::puts("run me under valgrind"), 1;
  int failures = 0;
  for (const std::string& name : variant_names()) {
    const Choice kernels(name);
    bool blocks = false;
    for (const char* each : {"columns-near", "columns-far", "columns-both"})
      blocks = blocks || name.find(each) != name.npos;
    if (blocks) failures += blocks_of_columns(kernels, name);
    for (Task task : {Task::ball, Task::box, Task::halves, Task::distances})
      for (std::size_t d : {1u, 3u, 8u, 9u, 20u, 100u})
        for (int layout = 0; layout < 9; ++layout) {
          const bool matrix = layout == 1, columns = layout == 2 || layout > 6,
                     factors = layout == 3;
          const bool moved = layout == 4;
          const bool mixed = matrix || factors;
          const Form form = layout < 5   ? Form::ellipsoid
                            : layout & 1 ? Form::ball
                                         : Form::ball_at_zero;
          // Those are other ways there where numbers are left unscaled alone.
          const bool scaled = task == Task::box || task == Task::distances;
          if (form != Form::ellipsoid && (columns || d <= 8) && scaled) continue;
          if ((mixed && task == Task::box) || (columns && d == 1)) continue;
          const Case c{task,         d,   matrix, columns, factors ? (d + 1) / 2 : 0, moved,
                       rows_in_test, form};
          // An arrangement of columns has rows in none of its own, and the other way round.
          const char kind = name[name.find(':') + 1];
          if (columns != (kind == 'c')) continue;
          const bool registers = name.find("registers") != name.npos && d <= most_side_by_side,
                     eights = columns || (!mixed && (registers || d <= 8));
          // In flight; of rows whose cells are moved 1, 2, 4 or 8.
          const unsigned most = moved && kind == '3' ? 2 : name.find("baseline") == 0 ? 4 : 8;
          const unsigned group = eights ? 8 : std::min(unsigned(kind - '0'), most);
          const unsigned tests = rows_in_test / group + rows_in_test % group;
          const unsigned allowed = tests + (mixed ? rows_in_test : 0);
          for (unsigned found : {dependences<float>(kernels, c), dependences<double>(kernels, c)}) {
            if (found > 0 && found <= allowed) continue;
            ++failures;
            std::printf("FAILED: %u branches or addresses, %u allowed (%s, task %d, d = %zu%s)\n",
                        found, allowed, name.c_str(), int(task), d,
                        matrix       ? ", matrix"
                        : factors    ? ", factors"
                        : moved      ? ", moved"
                        : layout < 5 ? ""
                        : layout & 1 ? ", a ball"
                                     : ", a ball around 0");
          }
        }
  }
  std::puts(failures ? "rows can be told by their time" : "time tells of exceptional rows only");
  return failures != 0;
}
