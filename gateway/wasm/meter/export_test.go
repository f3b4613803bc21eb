package meter

const (
	GrowCost   = growCost
	ImportCost = importCost
)
