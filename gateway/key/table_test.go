package key

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

func glob(t require.TestingT, pattern string) config.Glob {
	g, err := config.NewGlob(pattern)
	require.NoError(t, err)
	return g
}

func stored(name, key string) storage.Key {
	return storage.Key{ID: "key_" + name, Name: name, SHA256: sha256.Sum256([]byte(key))}
}

func TestFindsOnlyTheWholeKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[!-~]{8,64}`).Draw(t, "key")
		table, err := NewTable([]config.Key{{Name: "a", Key: config.Secret(secret)}}, nil)
		require.NoError(t, err)
		require.Equal(t, "a", table.Find([]byte(secret)).Name)
		other := []byte(secret)
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			other = other[:rapid.IntRange(0, len(other)-1).Draw(t, "cut")]
		case 1:
			other = append(other, rapid.Byte().Draw(t, "more"))
		default:
			other[rapid.IntRange(0, len(other)-1).Draw(t, "where")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		}
		require.Nil(t, table.Find(other))
	})
}

func TestTableOfBothKinds(t *testing.T) {
	sum := sha256.Sum256([]byte("digest-only"))
	table, err := NewTable([]config.Key{
		{
			Name: "web", Key: "web-secret-1", Groups: []string{"primary", "backup"}, Models: []config.Glob{glob(t, "gpt-*")},
			Budget: "fast", Budgets: []string{"slow"}, RPM: 60, Labels: map[string]string{"team": "web"},
		},
		{Name: "hashed", KeySHA256: hex.EncodeToString(sum[:]), Smart: &config.Smart{Groups: []string{"s"}}},
	}, []storage.Key{
		{ID: "key_1", Name: "made", SHA256: sha256.Sum256([]byte("made-secret")), Models: []string{"org/*", "m?"}, Groups: []string{"primary"}, Budget: "b", RPM: 3},
	})
	require.NoError(t, err)
	require.Len(t, table.All(), 3)

	web := table.Find([]byte("web-secret-1"))
	require.Equal(t, []string{"primary", "backup"}, web.Groups)
	require.True(t, web.MayCall("gpt-5-mini"))
	require.False(t, web.MayCall("other"))
	require.True(t, web.MayName("fast"))
	require.True(t, web.MayName("slow"))
	require.False(t, web.MayName("interactive"))
	require.Equal(t, 60, web.RPM)
	require.Equal(t, "web", web.Labels["team"])
	require.Empty(t, web.ID)

	hashed := table.Find([]byte("digest-only"))
	require.Equal(t, []string{"s"}, hashed.Groups)
	require.Equal(t, DefaultBudget, hashed.Budget)
	require.True(t, hashed.MayCall("any/thing at all"))

	made := table.Find([]byte("made-secret"))
	require.Equal(t, "key_1", made.ID)
	require.True(t, made.MayCall("org/a/b"))
	require.True(t, made.MayCall("m1"))
	require.False(t, made.MayCall("m10"))
	require.Nil(t, table.Find(nil))
}

func TestTableIsUsableWithoutItsBrokenKeys(t *testing.T) {
	broken := stored("broken", "broken-1")
	broken.Models = []string{""}
	table, err := NewTable(
		[]config.Key{{Name: "web", Key: "web-secret"}},
		[]storage.Key{stored("web", "other"), stored("twin", "web-secret"), broken, stored("fine", "fine-key")},
	)
	require.ErrorContains(t, err, `key "web": another key has this name`)
	require.ErrorContains(t, err, `key "twin": it is the same as key "web"`)
	require.ErrorContains(t, err, `key "broken": models: ""`)
	require.NotContains(t, err.Error(), "web-secret")
	require.Len(t, table.All(), 2)
	require.Empty(t, table.Find([]byte("web-secret")).ID, "the configuration's key goes first")
	require.Nil(t, table.Find([]byte("other")))
	require.NotNil(t, table.Find([]byte("fine-key")))
}

func TestFindAllocatesNothing(t *testing.T) {
	table, err := NewTable([]config.Key{{Name: "web", Key: "web-secret-1"}}, nil)
	require.NoError(t, err)
	right, wrong := []byte("web-secret-1"), []byte("web-secret-2")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		k := table.Find(right)
		if k == nil || table.Find(wrong) != nil || !k.MayCall("m") {
			panic("wrong")
		}
	}))
}

func BenchmarkFind(b *testing.B) {
	table, err := NewTable([]config.Key{{Name: "web", Key: "web-secret-1"}}, nil)
	require.NoError(b, err)
	presented := []byte("web-secret-1")
	b.ReportAllocs()
	for b.Loop() {
		table.Find(presented)
	}
}
