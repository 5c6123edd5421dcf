// A guest in Go that does the work of guests/c, and some that only Go does:
// garbage, maps, strings, panics. Built by the tests as a WASI reactor.
package main

import (
	"math"
	"sort"
	"strconv"
)

const (
	rowsMax   = 4096
	groupsMax = 128
)

var (
	cpu, mem, disk, out [rowsMax]float64
	created             [rowsMax]int64
	priority            [rowsMax]int32
	need                [groupsMax][3]float64
	asks                [groupsMax]int32
	seed                uint64
)

func next() uint32 {
	seed = seed*6364136223846793005 + 1442695040888963407
	return uint32(seed >> 33)
}

//go:wasmexport setup
func setup(s int32) {
	seed = uint64(s)
	for i := range rowsMax {
		cpu[i] = float64(next() % 4000)
		mem[i] = float64(next() % 8192)
		disk[i] = float64(next() % 512)
		created[i] = int64(next())
		priority[i] = int32(next() % 100)
	}
	for g := range groupsMax {
		for k := range 3 {
			need[g][k] = float64(1 + next()%4000)
		}
		asks[g] = 50 + int32(next()%50)
	}
}

func distance(n *[3]float64, c, m, d float64) float64 {
	x, y, z := (n[0]-c)/n[0], (n[1]-m)/n[1], (n[2]-d)/n[2]
	return math.Sqrt(x*x + y*y + z*z)
}

//go:wasmexport score
func score(groups, rows, gap int32) uint64 {
	hash := uint64(14695981039346656037)
	for g := range groups {
		for r := g * rows; r < (g+1)*rows; r++ {
			if asks[g]-priority[r] < gap {
				out[r] = math.Inf(1)
				continue
			}
			s := distance(&need[g], cpu[r], mem[r], disk[r])
			out[r] = s*1000 + float64(priority[r]) + float64(created[r])*1e-12
		}
	}
	for r := range groups * rows {
		hash = (hash ^ math.Float64bits(out[r])) * 1099511628211
	}
	return hash
}

//go:wasmexport pick
func pick(rows int32) uint64 {
	order := make([]int, rows)
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool { return out[order[a]] < out[order[b]] })
	hash := uint64(0)
	for _, r := range order {
		hash = hash*31 + uint64(r)
	}
	return hash
}

//go:wasmexport garbage
func garbage(rounds int32) uint64 {
	groups := make(map[string][]float64)
	for i := range rounds {
		key := "group-" + strconv.Itoa(int(i%64))
		groups[key] = append(groups[key], float64(i))
	}
	sum := 0.0
	for g := range 64 {
		for _, v := range groups["group-"+strconv.Itoa(g)] {
			sum += v
		}
	}
	return math.Float64bits(sum)
}

//go:wasmexport spin
func spin() {
	for {
	}
}

//go:wasmexport recurse
func recurse(n int32) uint64 { return fib(uint64(n)) }

//go:noinline
func fib(n uint64) uint64 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:wasmexport fail
func fail() { panic("as asked") }

func main() {}
