// A C++ program with kernels in several variants linked into it. Many threads call them at once, the first calls
// included, on arrays of every layout that the variants tell apart; each result is compared with a plain loop.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "blend.h"
#include "window.h"

namespace {

// Rows and columns of an array that owns more memory than it shows.
template <typename T> class Matrix {
public:
    Matrix(std::int64_t rows, std::int64_t columns, bool transposed, std::int64_t offset)
        : shape_{rows, columns}, strides_{transposed ? 1 : columns, transposed ? rows : 1},
          memory_(static_cast<std::size_t>(rows * columns + offset)), offset_(offset) {}

    T &at(std::int64_t row, std::int64_t column) {
        return memory_[static_cast<std::size_t>(offset_ + row * strides_[0] + column * strides_[1])];
    }

    DLTensor tensor() {
        const auto bits = static_cast<std::uint8_t>(8 * sizeof(T));
        return {memory_.data() + offset_, {kDLCPU, 0}, 2, {kDLFloat, bits, 1}, shape_, strides_, 0};
    }

private:
    std::int64_t shape_[2], strides_[2];
    std::vector<T> memory_;
    std::int64_t offset_;
};

void check(tile_status status, const TileError &error) {
    if (status != TILE_OK) throw std::runtime_error(error.message);
}

tile_status blend(const TileLaunchOptions *options, const DLTensor *x, const DLTensor *y, float a, float) {
    return blend_f32(options, x, y, a);
}
tile_status blend(const TileLaunchOptions *options, const DLTensor *x, const DLTensor *y, float a, double) {
    return blend_f64(options, x, y, a);
}

template <typename T> bool try_blend(std::int64_t rows, std::int64_t columns, bool transposed, std::int64_t offset) {
    Matrix<T> x(rows, columns, transposed, offset), y(rows, columns, transposed, offset);
    std::vector<double> wanted;
    std::mt19937 random(static_cast<unsigned>(rows * 1000 + columns));
    std::uniform_real_distribution<double> number(-2, 2);
    const float a = 0.25F;
    for (std::int64_t m = 0; m < rows; m++)
        for (std::int64_t n = 0; n < columns; n++) {
            x.at(m, n) = static_cast<T>(number(random));
            y.at(m, n) = static_cast<T>(number(random));
            wanted.push_back(0.25 * static_cast<double>(x.at(m, n)) + 0.75 * static_cast<double>(y.at(m, n)));
        }
    TileError error{};
    TileLaunchOptions options{};
    options.struct_size = sizeof options;
    options.error = &error;
    const DLTensor given = x.tensor(), result = y.tensor();
    check(blend(&options, &given, &result, a, T()), error);
    double worst = 0;
    for (std::int64_t m = 0; m < rows; m++)
        for (std::int64_t n = 0; n < columns; n++)
            worst = std::fmax(worst, std::fabs(static_cast<double>(y.at(m, n)) -
                                               wanted[static_cast<std::size_t>(m * columns + n)]));
    return worst < 1e-6;
}

bool try_window(std::int64_t count, std::int64_t width) {
    std::vector<float> x(static_cast<std::size_t>(count)), y(static_cast<std::size_t>(count - width + 1));
    for (std::size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>((i * 31) % 17);
    std::int64_t n = count, m = count - width + 1;
    const DLTensor given{x.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, nullptr, 0};
    const DLTensor result{y.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &m, nullptr, 0};
    check(width == 3 ? window_D3(nullptr, &given, &result) : window_D8(nullptr, &given, &result), TileError{});
    for (std::size_t i = 0; i < y.size(); i++) {
        float sum = 0;
        for (std::size_t d = 0; d < static_cast<std::size_t>(width); d++) sum += x[i + d];
        if (sum != y[i]) return false;
    }
    return true;
}

int count_wrong() {
    int wrong = 0;
    for (const std::int64_t columns : {0, 1, 61, 64, 1024, 1025})
        for (const bool transposed : {false, true})
            for (const std::int64_t offset : {0, 1, 5}) {
                wrong += !try_blend<float>(7, columns, transposed, offset);
                wrong += !try_blend<double>(7, columns, transposed, offset);
            }
    for (const std::int64_t count : {8, 9, 63, 200}) wrong += !try_window(count, 3) + !try_window(count, 8);
    return wrong;
}

} // namespace

int main() {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&wrong] {
            try {
                wrong += count_wrong();
            } catch (const std::exception &problem) {
                std::fprintf(stderr, "%s\n", problem.what());
                wrong++;
            }
        });
    for (std::thread &thread : threads) thread.join();
    std::printf("8 threads, %d results wrong\n", wrong.load());
    return wrong.load() != 0;
}
