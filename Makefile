# Tools are built from source by the Go toolchain at the versions pinned here,
# into bin/tools. Nothing else is fetched or installed.
GOLANGCI_LINT_VERSION := v2.15.0
BENCHSTAT_VERSION     := v0.0.0-20260908200009-22c9c6c9d4da

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

GO     ?= go
MODULE := github.com/cede-scheduler/cede
APP    := $(MODULE)/cmd/internal/app

# The date is the commit's, so that equal commits result in equal binaries.
VERSION ?= $(shell sed -n 's/^const release = "\(.*\)"$$/\1/p' cmd/internal/app/build.go)
REVISION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DATE    ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X $(APP).Version=$(VERSION) -X $(APP).Commit=$(COMMIT) -X $(APP).Date=$(DATE)

# Packages whose code or tests start goroutines that share memory run under the race
# detector, which is too slow for all packages.
RACE_PACKAGES := $(addprefix ./,core/agent core/agent/driver/exec core/agent/member core/api core/broker core/clock \
	core/events core/kube/extender core/planner core/policy core/preempt core/replication/raftnode \
	core/replication/raftshim core/rpc core/scheduler core/server core/server/evalqueue core/server/groupcommit core/server/heartbeat \
	core/server/membership core/state core/storage core/storage/raftlog core/worker gossip plugins/internal/guestlog \
	plugins/process plugins/registry plugins/wasm)
# Of the first ones only the tests whose goroutines share most memory do; make soak runs all of them.
# With reduced counts the others run under it only, except for the tests that are skipped there.
RACE_SELECTED := $(addprefix ./,core/api core/preempt core/server core/storage gossip plugins/process plugins/registry \
	plugins/wasm)
RACE_SHARED   := TestAPI_ServesConcurrentRequests TestBlockingQuery_EndsWithCallerOrServer TestBlockingQuery_SeesChangeDuringSetup \
	TestBlockingQuery_SeesChangesBetweenQueries TestBlockingQuery_WaitsForPolicyChange TestBlockingQuery_WaitsForRelevantChange \
	TestBlockingQuery_WakesWhenNodeGoesDown TestBudgets_ReportStatus TestClusters_AgentReceivesAndReportsAssignments \
	TestComparisons_ReportStateAndErrors TestConnections_Limited TestPanics_FailOnlyTheirRequest TestScale_LosesNoUpdate \
	TestSlowClients_DisconnectedButBlockingQueriesKept TestStream_EndsWithItsToken TestStream_Filters TestStream_LastsUntilServerStops \
	TestStream_ReportsStartAheadOfState TestStream_ResumesAndReportsLostEvents TestStream_ResumesWithinAnIndex \
	TestFinder_FaultIsIndependentOfWorkers TestFinder_ProtectionIsIndependentOfWorkers TestFinder_ResultIsIndependentOfWorkersAndCalls \
	TestActivatePolicy_DropsNothingUnderLoad TestCheckAndSet_LosesNoUpdate TestCluster_HoldsUnderFaults TestEvalQueue_ChangesOfLeaderLoseNothing \
	TestLoadPolicy_ConcurrentLoads TestLoad_ShedsQueuedEvaluations TestMembership_RestartedServerStaysAndDeadServerIsRemoved \
	TestRegisterNode_RefusalAffectsItsCallerOnly TestRestoreSnapshot_SucceedsUnderLoad TestRunRebalance_ConcurrentRunsDoEachStepOnce \
	TestServer_ConcurrentPreemptionsRespectStrictBudget TestServer_LosesLeadershipUnderLoad TestUpgrade_RollingUpgrade \
	TestSnapshots_DeletesRemnantsOfOldOnes TestStore_ReportsBackgroundDeletions \
	TestPool_DiscoversAllMembersThroughOneSeed TestPool_IgnoresTagsWhileLeaving TestPool_KeepsMembersDuringClusterIDChange \
	TestPool_KeepsStoppedMember TestPool_PropagatesChangedTags TestPool_RejectsForeignMembers TestPool_RotatesKeys \
	TestBackoff_WaitEndsWithHost TestCall_LogsOutputOfGuests TestHost_CloseEndsRunningCallsAndStarts TestInstance_DiesBetweenCalls \
	TestInstance_OutlivesThreads TestLoad_CanBeCanceled TestModule_CountsConcurrentLossesOnce TestModule_IsConcurrent \
	TestVersion_ReplacesProcessThatDiedIdle \
	TestActiveSet_SwapsAtomicallyUnderLoad \
	TestModule_CanBeSwappedUnderLoad
RACE_PARTIAL  := $(addprefix ./,core/agent core/kube/extender core/replication/raftnode core/scheduler core/storage/raftlog)
RACE_SKIPPED  := ^(TestAnswers_(OneEvictionPerPreemptor|UnfedServerStoresBoundedObjects)|TestFaults_NoDamageIsSilent|$\
	TestFaults_Dama(gedRecordsOrphanNoTask|geToTaskFilesIsNotSilent)|$\
	TestBudgetSearch_ReportsCutSearch|TestRelocation_ShortcutsKeepThePlan|TestRounds_CallOnlyForLowestCost|$\
	TestLog_SplitsLargeBatches)$$

# It ends a package that hangs; a busy machine with empty caches needs several minutes.
TEST_TIMEOUT ?= 20m
# Tests of whole processes mostly wait for them, so that more packages, and more tests of
# a package, run at a time than there are processors. Normal counts keep these busy for longer.
TEST_PACKAGES ?= $(if $(filter normal,$(COUNTS)),3,4)
TEST_PARALLEL ?= 4
# Most of the memory of a test is garbage, so that the heap may grow before a collection.
TEST_GOGC     ?= 400
# With reduced counts a test runs with or without the race detector; with normal ones, as in
# .ci/run, all run without it, and some under it too.
COUNTS        ?= reduced
TEST_FLAGS     = -vet off -p $(TEST_PACKAGES) -parallel $(TEST_PARALLEL) -timeout $(TEST_TIMEOUT)
SOAK_TIMEOUT ?= 12h

# BENCH selects benchmarks by name, BENCH_PACKAGES by package; BASE names an earlier
# file in bench/ to compare with. For `make same`, BASE is a revision and SEEDS the
# number of generated scenarios; IGNORE lists fields of results that BASE lacks.
SEEDS          ?= 500
IGNORE         ?=
BENCH          ?= .
BENCH_COUNT    ?= 6
BENCH_PACKAGES ?= $(shell grep -rl --include='*_test.go' '^func Benchmark' . | xargs -r -n1 dirname | sort -u)
BENCH_OUT      ?= bench/$(REVISION).txt
BASE           ?=

DEMO_OUT    ?= bin/demo
CEDE_TRACES ?= ../shared/traces
DEMO_SEEDS  ?= 11

CEDE          := bin/cede
CEDE_BENCH    := bin/cede-bench
GOLANGCI_LINT := bin/tools/golangci-lint-$(GOLANGCI_LINT_VERSION)
BENCHSTAT     := bin/tools/benchstat-$(BENCHSTAT_VERSION)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: ## build bin/cede and bin/cede-bench; bin/kubectl-cede is a link
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(CEDE) ./cmd/cede
	ln -sf $(notdir $(CEDE)) $(dir $(CEDE))kubectl-cede
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(CEDE_BENCH) ./cmd/cede-bench

# The first differing decisions are in the report: they take a page each.
DEMO_COMPARE = $(CEDE) compare $(DEMO_OUT)/$(1).yaml -p default -p nomad --html $(DEMO_OUT)/$(1).html $(2) \
	| sed '/^FIRST DECISIONS/,$$d'
DEMO_ROW     = %-20s %-12s %6v %7v %8v
DEMO_LINE    = {{with .metrics}}{{if index . "boundReplicas"}}$(call DEMO_CELLS,.boundReplicas .evictedReplicas .unboundReplicas) replicas of \
	bindings{{else}}$(call DEMO_CELLS,.placed .victims .unplaced){{end}}{{end}}
DEMO_CELLS   = {{printf "$(DEMO_ROW)" $$.scenario $$.policy $(1)}}

.PHONY: demo
demo: build ## play the examples and compare two policies, in under a minute
	@mkdir -p $(DEMO_OUT)
	@printf '\n== The examples, each under the policy it was written for. What they expect must hold.\n\n'
	@printf '%-20s %-12s %6s %7s %8s\n' EXAMPLE POLICY PLACED EVICTED UNPLACED
	@$(CEDE) sim run examples/*/scenario.yaml \
	  -t '$(DEMO_LINE)'
	@printf '\nAll held. To see one: %s sim run examples/gang/scenario.yaml\n' $(CEDE)
	@printf '\n== A contended cluster: the same jobs on the same nodes under two policies.\n\n'
	@$(CEDE) sim generate examples/contended/spec.yaml -w $(DEMO_OUT)/contended.yaml
	@echo
	@$(call DEMO_COMPARE,contended,--seeds $(DEMO_SEEDS))
	@if [ -d '$(CEDE_TRACES)/openb-2023' ]; then \
	  printf '== A public trace of a GPU cluster: 149 days of submissions on 14 of its nodes.\n\n'; \
	  $(CEDE) sim import openb '$(CEDE_TRACES)/openb-2023' --nodes 14 -w $(DEMO_OUT)/openb.yaml; \
	  echo; \
	  $(call DEMO_COMPARE,openb); \
	else \
	  printf 'No traces at %s: set CEDE_TRACES to a folder that holds openb-2023 to compare on a real workload.\n\n' '$(CEDE_TRACES)'; \
	fi
	@printf '== Charts, and the decisions that differ: open %s%s in a browser.\n' $(DEMO_OUT)/contended.html \
	  "$$([ ! -d '$(CEDE_TRACES)/openb-2023' ] || echo ' and $(DEMO_OUT)/openb.html')"

.PHONY: member
member: build ## a server and two member clusters on loopback; one binding displaces another
	@examples/member/member.sh $(CEDE)

.PHONY: pool
pool: build ## three servers and ten nodes on loopback; the leader is killed
	@examples/pool/pool.sh $(CEDE)

.PHONY: test
test: ## every test with reduced counts, under the race detector where it matters; COUNTS=normal
ifeq ($(COUNTS),normal)
	GOGC=$(TEST_GOGC) $(GO) test $(TEST_FLAGS) ./...
else ifneq ($(COUNTS),reduced)
	@echo 'make test: COUNTS is $(COUNTS): must be reduced or normal' >&2; exit 2
else
	$(QUICK) $(GO) test $(TEST_FLAGS) $(if $(HAS_RACE),$$($(call packages_but,$(RACE_ONLY))),./...)
	$(if $(HAS_RACE),$(QUICK) $(GO) test $(TEST_FLAGS) -run '$(RACE_SKIPPED)' $(RACE_PARTIAL))
endif
	$(call race,$(TEST_FLAGS),$(QUICK),$(RACE_ONLY))
	$(if $(HAS_RACE),$(call race,$(TEST_FLAGS) -run '^($(subst $(SPACE),|,$(strip $(RACE_SHARED))))$$',$(QUICK),$(RACE_SELECTED)))

QUICK     = CEDE_QUICK=1 GOGC=$(TEST_GOGC)
EMPTY    :=
SPACE    := $(EMPTY) $(EMPTY)
RACE_ONLY = $(filter-out $(RACE_SELECTED),$(RACE_PACKAGES))

# packages_but lists all packages except the given ones.
packages_but = $(GO) list ./... | grep -vxF $(patsubst ./%,-e $(MODULE)/%,$(1))

.PHONY: soak
soak: ## the same tests with full counts: hours
	CEDE_SOAK=1 $(GO) test -vet off -count 1 -timeout $(SOAK_TIMEOUT) ./...
	$(call race,-vet off -count 1 -timeout $(SOAK_TIMEOUT),CEDE_SOAK=1,$(RACE_PACKAGES))

# A module of its own with pinned versions. With SHORT=1 the stories are reduced, and
# skipped if the programs of Kubernetes were not built before.
KUBERNETES_TIMEOUT ?= 3h

.PHONY: test-kubernetes
test-kubernetes: build ## stories on a real Kubernetes control plane, which is built once: 15 minutes
	cd core/kube/controlplane && CEDE_KUBERNETES_CEDE=$(CURDIR)/$(CEDE) $(if $(SHORT),,CEDE_KUBERNETES_BUILD=1) $(GO) test -vet off -count 1 -v \
	  $(if $(SHORT),-short) -timeout $(KUBERNETES_TIMEOUT) $(if $(STORY),-run '$(STORY)') .

# The race detector requires a C compiler. Without one, all tests run without it, and a
# line reports what was left out; .ci/run installs one.
HAS_RACE = $(shell command -v "$$($(GO) env CC)")

# Under the race detector, properties run with reduced counts (sdk/policytest/soak): a race
# shows early or not at all. By default, every process of a test sleeps for a second when it
# ends.
race = $(if $(HAS_RACE),CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 $(2) $(GO) test -race $(1) $(3),\
	@echo 'LEFT OUT: the race detector needs a C compiler (gcc or clang)' >&2)

.PHONY: manifests
manifests: ## render the Helm chart and the kustomize base, and compare them
	cd deploy/render && $(GO) test -timeout $(TEST_TIMEOUT) ./...

# Modules of their own, whose dependencies are none of cede. The stories build
# plugins/kubernetes with the same flags, so that it is compiled once. The stock programs are
# compiled with other versions of their dependencies.
NESTED := plugins/kubernetes core/kube/controlplane deploy/render
PLAIN   = $(GO) $(1) -trimpath

.PHONY: build-plugin
build-plugin: ## build bin/kube-scheduler with the plugin
	cd plugins/kubernetes && $(call PLAIN,build) -o $(CURDIR)/bin/kube-scheduler ./cmd/kube-scheduler

.PHONY: test-plugin
test-plugin: ## test the scheduler plugin, and vet the module of the control plane
	cd plugins/kubernetes && $(call PLAIN,test) -vet off -timeout $(TEST_TIMEOUT) .
	cd core/kube/controlplane && $(call PLAIN,vet) ./...

.PHONY: lint-nested
lint-nested: $(GOLANGCI_LINT) ## every linter in the modules of their own
	set -e; for module in $(NESTED); do (cd $$module && $(GO) mod tidy -diff && $(abspath $(GOLANGCI_LINT)) run --config $(CURDIR)/.golangci.yml ./...); done

.PHONY: check
check: lint test ## lint and test: what a change must pass

.PHONY: lint
lint: $(GOLANGCI_LINT) ## every linter of .golangci.yml, and go.mod as go mod tidy leaves it
	$(GO) mod tidy -diff
	$(GOLANGCI_LINT) run ./...
	$(GOLANGCI_LINT) run --build-tags process ./sdk/serve/...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## format every Go file
	$(GOLANGCI_LINT) fmt ./...

.PHONY: bench
bench: $(BENCHSTAT) ## run the benchmarks into bench/ and summarise them
	@mkdir -p $(dir $(BENCH_OUT))
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCH_COUNT) -timeout 0 $(BENCH_PACKAGES) | tee $(BENCH_OUT)
	@$(BENCHSTAT) $(if $(BASE),bench/$(BASE).txt) $(BENCH_OUT)

.PHONY: same
same: build ## compare the results of all policies with those of the revision BASE
	@test -n '$(BASE)' || { echo 'make same: BASE is required, such as BASE=HEAD~1' >&2; exit 2; }
	@dir=$$(mktemp -d); trap 'git worktree remove --force "$$dir"' EXIT; \
	git worktree add --quiet --detach "$$dir" '$(BASE)'; \
	(cd "$$dir" && CGO_ENABLED=0 $(GO) build -o "$$dir/old-cede" ./cmd/cede); \
	$(GO) run ./cmd/internal/sameresults -old "$$dir/old-cede" -new $(CEDE) -seeds $(SEEDS) -ignore '$(IGNORE)' \
	  $(if $(wildcard $(CEDE_TRACES)/openb-2023),-traces '$(CEDE_TRACES)')

.PHONY: generate
generate: ## regenerate files
	$(GO) generate ./core/... ./sdk/... ./plugins/...
	$(GO) generate ./cmd/... # docs/reference is generated from the above

.PHONY: clean
clean: ## remove build results, but not benchmark results
	rm -rf bin

$(GOLANGCI_LINT):
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION))

$(BENCHSTAT):
	$(call install,golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION))

# The version is part of the file's name, so that a new version is a new target.
install = GOBIN=$(abspath $(dir $@)) $(GO) install $(1) && mv $(dir $@)$(patsubst %-$(lastword $(subst @, ,$(1))),%,$(notdir $@)) $@
