package main

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A guestCost is the cost of one hostile module to its host, as measured: loading it, the
// self-test, and decisions with it. It is the maximum of several runs on a machine with two
// processors, which TestHostileGuests_StayBelowCeilingsWhileJobsArePlaced prints.
type guestCost struct {
	memory int           // growth of the resident memory of the server and its compiler, in MiB
	cpu    time.Duration // of both, divided by machineDelay
}

// maxGuestCost follows from limits of the product: a compiler process may use 768 MiB and
// 15 s of processor time. The server places plain jobs meanwhile.
var maxGuestCost = guestCost{900, 25 * time.Second}

// ceiling returns the cost at which the test fails on a machine with a delay. The constants
// cover the plain jobs, garbage in the heap of the server, and short-lived compilers that end
// between two samples.
func (c guestCost) ceiling(delay float64) guestCost {
	cpu := time.Duration(delay * float64(3*c.cpu+time.Second))
	return guestCost{min(2*c.memory+40, maxGuestCost.memory), min(cpu, maxGuestCost.cpu)}
}

// referenceTime is the processor time of referenceWork on the machine of guestCosts.
const referenceTime = 40 * time.Millisecond

// machineDelay returns how many times longer fixed work takes at present than on the machine of
// guestCosts, and at least 1. Another processor and other processes on its cores and caches
// change it.
func machineDelay() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime()
	referenceWork()
	return max(1, float64(threadTime()-begin)/float64(referenceTime))
}

// referenceWork sorts and counts numbers, about as many as fit in the caches of a core.
func referenceWork() {
	random := rand.New(rand.NewPCG(1, 1))
	numbers, counts := make([]uint64, 200_000), map[uint64]int{}
	for i := range numbers {
		numbers[i] = random.Uint64()
		counts[numbers[i]%50_000]++
	}
	slices.Sort(numbers)
}

// threadTime returns the processor time of the calling thread.
func threadTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		panic(err) // the arguments are valid
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// isPlayed reports whether the counts include the module with a number. All of them take more
// than a minute of processor time, most of it for a few bombs.
func (c guestCost) isPlayed(number int) bool {
	switch {
	case soak.Full():
		return true
	case soak.Quick():
		return c.cpu < time.Second && number%3 == 0
	default:
		return c.cpu < 4*time.Second
	}
}

// guestCosts has a row for each module. One that is refused before it is compiled costs nothing
// that can be measured.
var guestCosts = map[string]guestCost{
	"bomb/branch_table":       {154, 3640 * time.Millisecond},
	"bomb/branch_tables":      {0, 0},
	"bomb/calls":              {324, 2320 * time.Millisecond},
	"bomb/data":               {6, 10 * time.Millisecond},
	"bomb/deep_blocks":        {390, 18360 * time.Millisecond},
	"bomb/deep_loops":         {30, 70 * time.Millisecond},
	"bomb/divisions":          {580, 3680 * time.Millisecond},
	"bomb/elements":           {216, 3380 * time.Millisecond},
	"bomb/globals":            {0, 20 * time.Millisecond},
	"bomb/ifs_of_locals":      {87, 6050 * time.Millisecond},
	"bomb/indirect_calls":     {680, 18270 * time.Millisecond},
	"bomb/live_locals":        {72, 320 * time.Millisecond},
	"bomb/live_values":        {110, 540 * time.Millisecond},
	"bomb/loads":              {628, 13110 * time.Millisecond},
	"bomb/loops_in_loops":     {498, 6200 * time.Millisecond},
	"bomb/loops_of_locals":    {398, 13460 * time.Millisecond},
	"bomb/many_functions":     {103, 2520 * time.Millisecond},
	"bomb/many_locals":        {667, 4510 * time.Millisecond},
	"bomb/references":         {0, 10 * time.Millisecond},
	"bomb/straight":           {82, 340 * time.Millisecond},
	"bomb/straight_functions": {145, 1170 * time.Millisecond},
	"bomb/table_entries":      {0, 0},
	"bomb/tables":             {44, 40 * time.Millisecond},
	"bomb/types":              {13, 30 * time.Millisecond},
	"bomb/vectors":            {103, 790 * time.Millisecond},

	"hostile/alloc_end":           {48, 70 * time.Millisecond},
	"hostile/alloc_negative":      {51, 70 * time.Millisecond},
	"hostile/alloc_null":          {52, 60 * time.Millisecond},
	"hostile/alloc_odd":           {51, 80 * time.Millisecond},
	"hostile/alloc_outside":       {46, 80 * time.Millisecond},
	"hostile/bulk":                {45, 70 * time.Millisecond},
	"hostile/chatter":             {48, 90 * time.Millisecond},
	"hostile/configure_trap":      {51, 60 * time.Millisecond},
	"hostile/data_outside":        {42, 70 * time.Millisecond},
	"hostile/describe_columns":    {51, 80 * time.Millisecond},
	"hostile/describe_control":    {42, 60 * time.Millisecond},
	"hostile/describe_hooks":      {47, 60 * time.Millisecond},
	"hostile/describe_long":       {41, 50 * time.Millisecond},
	"hostile/describe_nameless":   {48, 50 * time.Millisecond},
	"hostile/describe_settings":   {47, 50 * time.Millisecond},
	"hostile/describe_twice":      {50, 60 * time.Millisecond},
	"hostile/empty_writes":        {47, 80 * time.Millisecond},
	"hostile/exit":                {41, 120 * time.Millisecond},
	"hostile/future_major":        {39, 80 * time.Millisecond},
	"hostile/future_minor":        {47, 70 * time.Millisecond},
	"hostile/import_memory":       {0, 0},
	"hostile/import_others":       {0, 0},
	"hostile/import_socket":       {0, 0},
	"hostile/initialize_spin":     {49, 90 * time.Millisecond},
	"hostile/memory_bomb":         {349, 290 * time.Millisecond},
	"hostile/memory_keeper":       {42, 130 * time.Millisecond},
	"hostile/memory_large":        {0, 0},
	"hostile/memory_mover":        {49, 140 * time.Millisecond},
	"hostile/missing_exports":     {0, 0},
	"hostile/newlines":            {48, 80 * time.Millisecond},
	"hostile/option_inf":          {48, 50 * time.Millisecond},
	"hostile/option_nan":          {45, 70 * time.Millisecond},
	"hostile/past_major":          {39, 30 * time.Millisecond},
	"hostile/pick_backwards":      {47, 90 * time.Millisecond},
	"hostile/pick_negative":       {42, 80 * time.Millisecond},
	"hostile/pick_neighbour":      {51, 100 * time.Millisecond},
	"hostile/pick_nothing":        {49, 50 * time.Millisecond},
	"hostile/pick_one_too_many":   {51, 160 * time.Millisecond},
	"hostile/pick_orphans":        {47, 60 * time.Millisecond},
	"hostile/pick_stranger":       {49, 70 * time.Millisecond},
	"hostile/pick_too_many":       {42, 60 * time.Millisecond},
	"hostile/pick_twice":          {46, 40 * time.Millisecond},
	"hostile/random":              {47, 50 * time.Millisecond},
	"hostile/recurse_endless":     {45, 50 * time.Millisecond},
	"hostile/recurse_exponential": {51, 110 * time.Millisecond},
	"hostile/score_minus_inf":     {46, 40 * time.Millisecond},
	"hostile/score_nan":           {51, 60 * time.Millisecond},
	"hostile/score_never":         {49, 50 * time.Millisecond},
	"hostile/scribble":            {50, 60 * time.Millisecond},
	"hostile/scribble_all":        {50, 50 * time.Millisecond},
	"hostile/scribble_scores":     {49, 110 * time.Millisecond},
	"hostile/spin":                {47, 110 * time.Millisecond},
	"hostile/start_prints":        {49, 50 * time.Millisecond},
	"hostile/start_spin":          {46, 70 * time.Millisecond},
	"hostile/start_trap":          {47, 40 * time.Millisecond},
	"hostile/status_1":            {42, 50 * time.Millisecond},
	"hostile/status_17":           {50, 60 * time.Millisecond},
	"hostile/status_bad_frame":    {41, 50 * time.Millisecond},
	"hostile/status_error":        {47, 90 * time.Millisecond},
	"hostile/status_error_long":   {47, 90 * time.Millisecond},
	"hostile/status_memory":       {47, 60 * time.Millisecond},
	"hostile/status_minimum":      {49, 50 * time.Millisecond},
	"hostile/status_minus_5":      {51, 50 * time.Millisecond},
	"hostile/status_unsupported":  {50, 40 * time.Millisecond},
	"hostile/table_bomb":          {43, 60 * time.Millisecond},
	"hostile/trap_alloc":          {45, 40 * time.Millisecond},
	"hostile/trap_delta":          {43, 40 * time.Millisecond},
	"hostile/trap_describe":       {46, 50 * time.Millisecond},
	"hostile/trap_divide":         {46, 60 * time.Millisecond},
	"hostile/trap_last_words":     {50, 60 * time.Millisecond},
	"hostile/trap_memory":         {46, 80 * time.Millisecond},
	"hostile/trap_options":        {47, 60 * time.Millisecond},
	"hostile/trap_score":          {47, 60 * time.Millisecond},
	"hostile/trap_select":         {46, 40 * time.Millisecond},
	"hostile/upwards":             {46, 50 * time.Millisecond},
	"hostile/write_outside":       {41, 70 * time.Millisecond},
	"hostile/wrong_imports":       {0, 0},
	"hostile/wrong_signatures":    {0, 10 * time.Millisecond},
}
