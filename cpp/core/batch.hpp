// Views of what a kernel reads and writes. They own nothing.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ellipsum {

// What numbers are stored as. Sums are of doubles: all but the first two become such as they are read.
enum class Dtype : std::uint8_t {
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,  // a byte, of which 0 is false
  bits      // the lowest of a byte first; in columns alone
};

constexpr bool is_floating(Dtype type) { return type == Dtype::float32 || type == Dtype::float64; }

// Bytes of a number; 0 of bits.
constexpr std::size_t size_of(Dtype type) {
  switch (type) {
    case Dtype::int8:
    case Dtype::uint8:
    case Dtype::boolean:
      return 1;
    case Dtype::int16:
    case Dtype::uint16:
      return 2;
    case Dtype::float32:
    case Dtype::int32:
    case Dtype::uint32:
      return 4;
    case Dtype::bits:
      return 0;
    default:
      return 8;
  }
}

// Which numbers of a column are there: a bit for each, the lowest of a byte first. Whatever lies in a
// number's place whose bit is 0, it is a hole. Null: all of them are there.
struct Validity {
  const std::uint8_t* bits = nullptr;
  std::size_t first = 0;  // bit of the column's first number
};

struct MadeRows;

// n rows of d coordinates; strides in bytes, of any sign. Where `columns` is set, coordinate j lies
// there from number `first` on, in place of data + j * column_stride: of types[j] in a batch of
// float64, if that is set, and what valid[j] leaves out are holes, if that is. With `made` a pass makes them
// as it goes.
struct Batch {
  const void* data;
  Dtype dtype;
  std::size_t n, d;
  std::ptrdiff_t row_stride, column_stride;
  const void* const* columns = nullptr;
  std::size_t first = 0;
  const Validity* valid = nullptr;
  const Dtype* types = nullptr;
  bool converts = false;  // some of the types are no floats
  MadeRows* made = nullptr;
};

// What a pass makes of its rows y = b (x - c) or B (x - c), B = diag(b) + U V' where it has a rank.
enum class Task {
  ball,      // moved to |y| <= radius, quantised, added
  box,       // the same with |y_j| <= limit_j
  halves,    // as `ball`, but positive numbers and the magnitudes of negative ones apart
  distances  // counted by the edges that |y| lies between: nothing is clipped or added
};

// What a region's coordinates share, found by clip_sum: all scales (and limits, of a box) are the same (a
// ball, or a cube), and the centers 0. Kernels may make use of it.
enum class Form { ellipsoid, ball, ball_at_zero };

// What cells are moved into, for rows of d coordinates: the same numbers over and over, for whole
// rows, and a vector of 8 more.
struct CellBox {
  const double *lower, *center, *upper;
  std::size_t rows;  // in one line of them
};

// The clip region in grid units, b/g and C/g, or the edges of the distances; `matrix`
// (d x d, row-major) replaces `scale` where not null. With a rank, U V' is added to `scale`.
struct Region {
  Task task;
  std::size_t d;
  const double* center;  // data unit
  const double* scale;   // grid units per data unit
  const double* matrix;  // grid units per data unit; 24 significant bits, 0 or 2^+-400
  const double* limit;   // box: per coordinate, grid units
  double radius;         // ball, halves: grid units
  const double* edges;   // distances: upper ends of the bins, ascending; the last bin has none
  std::size_t bins;
  const double* packed;   // `matrix` or `factors` as the kernel wants them; set by clip_sum
  bool stretch;           // |y|^2 of a row counts d/k times, k of its d cells present: the rule, 2
  std::size_t rank;       // columns of U and V; 0: there are none
  const double* factors;  // U, then V, both d x rank, row-major; 24 significant bits, 0 or within
                          // 2^+-400 (U: grid units per data unit), and V's below 1
  // Where set, every cell is first moved into [lower_j, upper_j], a hole to the center, wherever that
  // is: data unit. Then no row has a hole.
  const double* lower;
  const double* upper;
  Form form = Form::ellipsoid;
  const CellBox* box = nullptr;  // the same in lines; set by clip_sum
};

// The same for one coordinate.
struct CellEnds {
  double lower, center, upper;
};

// Rows that a pass cannot read where they lie. It makes those that it reads next, one after the other
// (made_rows.inl): from `first` to before `end` they are at `to`.
struct MadeRows {
  const Batch& from;
  const Region& region;
  char* to;
  std::size_t step, bytes;  // rows at a time, and of each
  std::size_t first, end;
  std::size_t ahead;  // bytes from a row to those that the pass asks the memory for; 0: it does not
};

// Where a pass over groups adds its rows.
struct GroupSums {
  const std::int64_t* index;  // of each row; -1 for a row in no group
  std::int64_t* table;        // d integers a group
  std::int64_t* rows;         // number of rows of each group
  std::int64_t* nowhere;      // d integers, for rows in no group
  std::int64_t* absent;       // rows with a hole in a coordinate: whole vectors of 8
};

// What a pass over a batch saw; both are private.
struct ClipCounts {
  std::int64_t clipped;    // rows outside the region, as they count: the centre in their holes
  std::int64_t nonfinite;  // rows with a hole: a NaN or an infinity
  std::size_t left = 0;    // rows at the end that it did not take (Arrangement::takes)
};

}  // namespace ellipsum
