package abi

// The version of the ABI. A host rejects a guest with another major version, and a
// guest with a higher minor version than its own, because it may need columns or
// operations that the host does not have.
const (
	Major = 1
	Minor = 4
	// Version is the result of cede_abi_version.
	Version = Major<<16 | Minor
)

// Magic is the first word of a frame: CEDE in ASCII.
const Magic = 0x45444543

// Sizes and positions in bytes, from the start of the frame.
const (
	HeaderLen = 80
	EntryLen  = 16
	// Alignment of a frame in memory and of every column in a frame.
	Alignment = 16

	offMagic      = 0
	offMajor      = 4 // u16
	offMinor      = 6 // u16
	offHeaderLen  = 8
	offFrameLen   = 12
	offOp         = 16
	offFlags      = 20
	offNow        = 24 // i64
	offOptions    = 32
	offRows       = 36
	offDims       = 40
	offRequests   = 44
	offColumns    = 48
	offColumnsOff = 52
	offAnswers    = 56
	offAnswersOff = 60
	offErrorOff   = 64
	offErrorCap   = 68
	// 72 to 80 are zero.
)

// ErrorCap is the maximum length of an error's text in bytes.
const ErrorCap = 1024

// Op is the operation of a frame.
type Op uint32

// The operations. Each has its own export; the frame repeats the operation.
const (
	OpDescribe Op = iota + 1
	OpConfigure
	OpPriorityDelta
	OpScoreVictims
	OpSelectVictims
	OpScoreOptions
	OpPreemptBindings // since 1.2
)

// Exports holds the names of a module's functions, by Op. Each takes the address and
// the length of a frame and returns a Status.
var Exports = [...]string{
	OpDescribe:        "cede_describe",
	OpConfigure:       "cede_configure",
	OpPriorityDelta:   "cede_priority_delta",
	OpScoreVictims:    "cede_score_victims",
	OpSelectVictims:   "cede_select_victims",
	OpScoreOptions:    "cede_score_options",
	OpPreemptBindings: "cede_preempt_bindings",
}

// Names holds the names of the hooks, by Op, as they appear in faults.
var Names = [...]string{
	OpDescribe:        "Describe",
	OpConfigure:       "Configure",
	OpPriorityDelta:   "PriorityDelta",
	OpScoreVictims:    "ScoreVictims",
	OpSelectVictims:   "SelectVictims",
	OpScoreOptions:    "ScoreOptions",
	OpPreemptBindings: "PreemptBindings",
}

// The other exports of a module and its one import.
const (
	ExportVersion    = "cede_abi_version" // () -> i32
	ExportAlloc      = "cede_alloc"       // (size i32) -> i32, 0 if there is no memory
	ExportMemory     = "memory"
	ExportInitialize = "_initialize" // () -> (), optional, called once
	ImportModule     = "cede_v1"
	ImportLog        = "log" // (level i32, ptr i32, len i32) -> ()
)

// Levels of a log line.
const (
	LevelDebug = iota
	LevelInfo
	LevelWarn
	LevelError
)

// MaxLog is the maximum length of a log line in bytes.
const MaxLog = 4096

// Status is the result of a call.
type Status int32

// The statuses. Any other value is a fault of the guest.
const (
	OK            Status = 0
	PolicyError   Status = -1 // the text is in the error area
	BadFrame      Status = -2
	UnsupportedOp Status = -3
	OutOfMemory   Status = -4
)

// Hooks of a policy, as bits of AnswerHooks.
const (
	HookPriorityDelta = 1 << iota
	HookScoreVictims
	HookSelectVictims
	HookScoreOptions
	HookPreemptBindings
)

// Flags of a policy, as bits of AnswerFlags: policy.Info.
const (
	FlagAdaptive = 1 << iota
	FlagAscending
	FlagKeepRedundant
	FlagConfigurable // the policy has settings: the host calls cede_configure
	FlagElastic
	FlagMultiCluster
	FlagLeastFirst
	FlagYoungestFirst
	FlagMonotone
)

// Type is the type of a column's elements.
type Type uint32

// The types, little-endian.
const (
	U8 Type = iota + 1
	I32
	I64
	F64
)

// sizes holds the sizes of elements in bytes, by Type.
var sizes = [...]uint8{U8: 1, I32: 4, I64: 8, F64: 8}

// Size returns the size of an element in bytes, or 0 if the type is unknown.
func (t Type) Size() int {
	if t >= Type(len(sizes)) { // compared unsigned: an int may be negative on 32 bits
		return 0
	}
	return int(sizes[t])
}

// ID identifies a column. IDs are never reused; guests skip unknown IDs.
type ID uint32

// The string table, in every frame that holds strings. A string elsewhere is an index
// into it; index 0 is the empty string.
const (
	StringEnd   ID = 0x0101 // i32[strings]: end of each string in StringBytes
	StringBytes ID = 0x0102 // u8[]: UTF-8
)

// Columns of the preemptor, with one element unless a shape is given.
const (
	PreemptorPriority   ID = 0x0201 // i32
	PreemptorDelta      ID = 0x0202 // i32
	PreemptorAsk        ID = 0x0203 // f64[dims]
	PreemptorPorts      ID = 0x0204 // i32
	PreemptorNamespace  ID = 0x0205 // i32, text
	PreemptorJob        ID = 0x0206 // i32, text
	PreemptorGroup      ID = 0x0207 // i32, text
	PreemptorJobType    ID = 0x0208 // i32, text
	PreemptorWaiting    ID = 0x0209 // i64, ns
	PreemptorAttempts   ID = 0x020A // i32
	DeviceAskID         ID = 0x020B // i32[requests], text
	DeviceAskCount      ID = 0x020C // i32[requests]
	PreemptorLabelKey   ID = 0x020D // i32[n], text, with LabelColumns
	PreemptorLabelValue ID = 0x020E // i32[n], text
	PreemptorNoteName   ID = 0x020F // i32[n], text, with AnnotationColumns
	PreemptorNoteValue  ID = 0x0210 // f64[n]
)

// Columns of options, in the frames of every hook unless noted.
const (
	DimName     ID = 0x0301 // i32[dims], text
	FirstRow    ID = 0x0302 // i32[options+1]; in ScoreOptions with VictimColumns
	Need        ID = 0x0303 // f64[dims][options]; in ScoreOptions with VictimColumns
	Freed       ID = 0x0304 // f64[dims][options]
	DeviceNeed  ID = 0x0305 // f64[requests][options], with DeviceColumns
	MustLeave   ID = 0x0306 // i32[options], with MustLeaveColumn
	Place       ID = 0x0307 // i32[options], text, with PlaceColumn
	Capacity    ID = 0x0308 // f64[dims][options], with CapacityColumns
	Reserved    ID = 0x0309 // f64[dims][options], with CapacityColumns
	Free        ID = 0x030A // f64[dims][options], with CapacityColumns
	Own         ID = 0x030B // f64[dims][options], with CapacityColumns
	DeviceGroup ID = 0x030C // i32[requests][options], ScoreOptions, with DeviceColumns
)

// Columns of rows: candidates, or in ScoreOptions the victims of each option.
const (
	RowPriority      ID = 0x0401 // i32[rows]
	RowUse           ID = 0x0402 // f64[dims][rows], with UseColumns
	RowStart         ID = 0x0403 // i64[rows], with StartColumn
	RowLostWork      ID = 0x0404 // i64[rows], with LostWorkColumn
	RowNamespace     ID = 0x0405 // i32[rows], text, with JobColumns
	RowJob           ID = 0x0406 // i32[rows], text, with JobColumns
	RowGroup         ID = 0x0407 // i32[rows], text, with JobColumns
	RowEvictions     ID = 0x0408 // i32[rows], with EvictionColumns
	RowEvictionLimit ID = 0x0409 // i32[rows], with EvictionColumns
	RowMustLeave     ID = 0x040A // u8[rows], with MustLeaveColumn
	RowDevices       ID = 0x040B // f64[requests][rows], with DeviceColumns
	RowLabelFirst    ID = 0x040C // i32[rows+1], with LabelColumns
	RowLabelKey      ID = 0x040D // i32[n], text
	RowLabelValue    ID = 0x040E // i32[n], text
	RowNoteName      ID = 0x040F // i32[names], text, with AnnotationColumns
	RowNoteValue     ID = 0x0410 // f64[names][rows]
	RowBudgetFirst   ID = 0x0411 // i32[rows+1], with BudgetColumns
	RowBudget        ID = 0x0412 // i32[n]: rows of the table of budgets

	RowRelocation        ID = 0x0413 // u8[rows], with RelocationColumns
	RowDisplacedPriority ID = 0x0414 // i32[rows], with RelocationColumns
	RowDisplacedLostWork ID = 0x0415 // i64[rows], with RelocationColumns
)

// Shared tables, with SharedTables unless noted.
const (
	TotalCapacity   ID = 0x0501 // f64[dims]; with TotalsColumn too
	NamespaceName   ID = 0x0502 // i32[n], text
	NamespaceWeight ID = 0x0503 // f64[n]
	NamespaceUse    ID = 0x0504 // f64[dims][n]
	BudgetName      ID = 0x0505 // i32[n], text, with BudgetColumns
	BudgetSlack     ID = 0x0506 // i32[n]
	BudgetStrict    ID = 0x0507 // u8[n]
)

// Columns of ScoreOptions.
const (
	OptionNode      ID = 0x0601 // i32[options]
	HighestPriority ID = 0x0602 // i32[options]
	VictimCount     ID = 0x0603 // i32[options]
	PrioritySum     ID = 0x0604 // i64[options]
	LostWork        ID = 0x0605 // i64[options], ns, with LostWorkColumn
	FitBefore       ID = 0x0606 // f64[options], with FitColumns
	FitAfter        ID = 0x0607 // f64[options], with FitColumns
	Components      ID = 0x0608 // f64[3][options], with FitColumns
	Present         ID = 0x0609 // u8[options], with FitColumns
	Violations      ID = 0x060A // i32[options], with BudgetColumns
	OptionStart     ID = 0x060B // i64[options], with StartColumn

	Stranded          ID = 0x060C // i32[options], with RelocationColumns
	Displacing        ID = 0x060D // i32[options], with RelocationColumns
	DisplacedPriority ID = 0x060E // i32[options], with RelocationColumns
	DisplacedLostWork ID = 0x060F // i64[options], ns, with RelocationColumns

	ExpectedLostWork ID = 0x0610 // i64[options], ns, with LookAheadColumns
	CascadeDepth     ID = 0x0611 // i32[options], with LookAheadColumns
	ExpectedDelay    ID = 0x0612 // i64[options], ns, with LookAheadColumns
)

// Columns of Configure: one row per value. A setting with several values has several
// adjacent rows; a setting without values has none.
const (
	SettingName    ID = 0x0701 // i32[n], text
	SettingKind    ID = 0x0702 // u8[n]: policy.Kind
	SettingItem    ID = 0x0703 // i32[n], text: the name of a named number
	SettingInteger ID = 0x0704 // i64[n]: bool, integer, duration (ns)
	SettingNumber  ID = 0x0705 // f64[n]: number, named number
	SettingText    ID = 0x0706 // i32[n], text
)

// Answers. The host reserves Count elements and fills them. For answers marked "any"
// the guest writes the number of elements that it used into the entry's count.
const (
	AnswerName     ID = 0x1001 // u8[any]
	AnswerVersion  ID = 0x1002 // u8[any]: the policy's own version, for display
	AnswerHooks    ID = 0x1003 // i32
	AnswerFlags    ID = 0x1004 // i32
	AnswerDelta    ID = 0x1005 // i32
	AnswerColumns  ID = 0x1006 // i64: policy.Columns
	AnswerSettings ID = 0x1007 // u8[any]: JSON, see ../settings

	AnswerGap     ID = 0x1011 // i32[rows], filled with the base gap
	AnswerTier    ID = 0x1012 // i64[rows], filled with 0; in ScoreOptions and PreemptBindings [4][options]
	AnswerScore   ID = 0x1013 // f64[rows], filled with 0; in ScoreOptions [options]
	AnswerPicks   ID = 0x1014 // i32[any]: rows
	AnswerEnds    ID = 0x1015 // i32[options]: end of each option's picks
	AnswerRecheck ID = 0x1016 // i64, filled with 0: no recheck requested
)

// Capacities for the strings of a description, in bytes.
const (
	NameCap     = 128
	VersionCap  = 128
	SettingsCap = 32 << 10
)
