// The work of a policy that scores victims: per node what is needed, per
// candidate a distance over three resources, a gap of priorities and an age.
// Built by the tests, with and without SIMD.
typedef unsigned long long u64;

enum { rows_max = 4096, groups_max = 128 };

static double cpu[rows_max], mem[rows_max], disk[rows_max], out[rows_max];
static long long created[rows_max];
static int priority[rows_max];
static double need[groups_max][3];
static int asks[groups_max];
static u64 seed;

static unsigned next(void) {
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33);
}

void setup(int s) {
	seed = (u64)s;
	for (int i = 0; i < rows_max; i++) {
		cpu[i] = next() % 4000;
		mem[i] = next() % 8192;
		disk[i] = next() % 512;
		created[i] = next();
		priority[i] = (int)(next() % 100);
	}
	for (int g = 0; g < groups_max; g++) {
		for (int k = 0; k < 3; k++) need[g][k] = 1 + next() % 4000;
		asks[g] = 50 + (int)(next() % 50);
	}
}

static double distance(const double *n, double c, double m, double d) {
	double x = (n[0] - c) / n[0], y = (n[1] - m) / n[1], z = (n[2] - d) / n[2];
	return __builtin_sqrt(x * x + y * y + z * z);
}

u64 score(int groups, int rows, int gap) {
	u64 hash = 14695981039346656037ull;
	for (int g = 0; g < groups; g++) {
		for (int r = g * rows; r < (g + 1) * rows; r++) {
			if (asks[g] - priority[r] < gap) {
				out[r] = __builtin_inf();
				continue;
			}
			double s = distance(need[g], cpu[r], mem[r], disk[r]);
			out[r] = s * 1000 + (double)priority[r] + (double)created[r] * 1e-12;
		}
	}
	for (int r = 0; r < groups * rows; r++) {
		u64 bits;
		__builtin_memcpy(&bits, &out[r], 8);
		hash = (hash ^ bits) * 1099511628211ull;
	}
	return hash;
}

// Sorts the rows of one group by score, as a policy that picks does.
u64 pick(int rows) {
	static int order[rows_max];
	for (int i = 0; i < rows; i++) {
		int j = i;
		for (; j > 0 && out[order[j - 1]] > out[i]; j--) order[j] = order[j - 1];
		order[j] = i;
	}
	u64 hash = 0;
	for (int i = 0; i < rows; i++) hash = hash * 31 + (u64)order[i];
	return hash;
}

// Small calls: nothing but the price of entering a function.
__attribute__((noinline)) static u64 fib(u64 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

u64 recurse(int n) { return fib((u64)n); }

// A guest without libc brings its own.
void *memcpy(void *to, const void *from, unsigned long n) {
	char *t = to;
	const char *f = from;
	while (n--) *t++ = *f++;
	return to;
}

void *memset(void *to, int c, unsigned long n) {
	char *t = to;
	while (n--) *t++ = (char)c;
	return to;
}
