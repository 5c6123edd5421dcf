package replication

// kind numbers the commands. The numbers are those of the fields of the
// protobuf message and never change their meaning.
type kind uint8

const (
	kindBootstrap           kind = 10
	kindSetVersion          kind = 11
	kindRegisterJob         kind = 12
	kindStopJob             kind = 13
	kindStopAllocs          kind = 14
	kindWriteEvals          kind = 15
	kindApplyPlans          kind = 16
	kindRegisterNodes       kind = 17
	kindChangeNodes         kind = 18
	kindDeleteNodes         kind = 19
	kindUpdateAllocs        kind = 20
	kindSetConfig           kind = 21
	kindUpsertPriorityClass kind = 22
	kindDeletePriorityClass kind = 23
	kindCollect             kind = 24
	kindPutChunk            kind = 25
	kindLoadPolicy          kind = 26
	kindCheckPolicy         kind = 27
	kindChangePolicy        kind = 28
	kindPutToken            kind = 29
	kindDeleteToken         kind = 30
	kindUpsertBudget        kind = 31
	kindDeleteBudget        kind = 32
	kindUpsertClusters      kind = 33
	kindUpsertBinding       kind = 34
	kindDeleteBinding       kind = 35
	kindEndAssignments      kind = 36
	kindChangeClusters      kind = 200
	kindDeleteCluster       kind = 201
	kindStopBinding         kind = 202
	kindUpdateAssignments   kind = 50
	kindStopAssignments     kind = 51
)

func (*Bootstrap) command() kind           { return kindBootstrap }
func (*SetVersion) command() kind          { return kindSetVersion }
func (*RegisterJob) command() kind         { return kindRegisterJob }
func (*StopJob) command() kind             { return kindStopJob }
func (*StopAllocs) command() kind          { return kindStopAllocs }
func (*WriteEvals) command() kind          { return kindWriteEvals }
func (*ApplyPlans) command() kind          { return kindApplyPlans }
func (*RegisterNodes) command() kind       { return kindRegisterNodes }
func (*ChangeNodes) command() kind         { return kindChangeNodes }
func (*DeleteNodes) command() kind         { return kindDeleteNodes }
func (*UpdateAllocs) command() kind        { return kindUpdateAllocs }
func (*SetConfig) command() kind           { return kindSetConfig }
func (*UpsertPriorityClass) command() kind { return kindUpsertPriorityClass }
func (*DeletePriorityClass) command() kind { return kindDeletePriorityClass }
func (*Collect) command() kind             { return kindCollect }
func (*PutChunk) command() kind            { return kindPutChunk }
func (*LoadPolicy) command() kind          { return kindLoadPolicy }
func (*CheckPolicy) command() kind         { return kindCheckPolicy }
func (*ChangePolicy) command() kind        { return kindChangePolicy }
func (*PutToken) command() kind            { return kindPutToken }
func (*DeleteToken) command() kind         { return kindDeleteToken }
func (*UpsertBudget) command() kind        { return kindUpsertBudget }
func (*DeleteBudget) command() kind        { return kindDeleteBudget }
func (*UpsertClusters) command() kind      { return kindUpsertClusters }
func (*UpsertBinding) command() kind       { return kindUpsertBinding }
func (*DeleteBinding) command() kind       { return kindDeleteBinding }
func (*EndAssignments) command() kind      { return kindEndAssignments }
func (*ChangeClusters) command() kind      { return kindChangeClusters }
func (*DeleteCluster) command() kind       { return kindDeleteCluster }
func (*StopBinding) command() kind         { return kindStopBinding }
func (*UpdateAssignments) command() kind   { return kindUpdateAssignments }
func (*StopAssignments) command() kind     { return kindStopAssignments }
