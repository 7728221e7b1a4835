package train

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/seq2seq"
)

var (
	dateYearFirst = regexp.MustCompile(`^([^0-9]*)([0-9]+) ?年 ?([0-9]+) ?月 ?([0-9]+) ?[日号]`)
	dateWord      = regexp.MustCompile(`\p{L}+`)
	dateNumber    = regexp.MustCompile(`[0-9]+`)
	dateSuffix    = regexp.MustCompile(`([0-9])(st|nd|rd|th|er|º)( |,|$)`)
	dateAccent    = strings.NewReplacer("ä", "a", "å", "a", "á", "a", "à", "a", "é", "e", "è", "e", "ì", "i", "ö", "o", "ø", "o", "û", "u",
		"ç", "c", "ś", "s", "ź", "z", "ł", "l", "ą", "a")
)

// Prefixes of words, without accents; two letters are whole words. The generator's own lists are not used.
var (
	monthBegins = []string{"", "jan gen ene sty", "feb fev lut", "mar mae mrz mrt maa", "apr avr abr kwi", "mai may maj mei mag",
		"jun juin giu cze", "jul juil lug lip", "aug aou ago sie", "sep set wrz", "oct okt ott out paz", "nov lis", "dec dez dic gru"}
	weekdayBegins = []string{"sun dim sonntag son dom zon nie nd so zo 日 星期日 星期天 周日", "mon lun seg maa man pon mo ma 月 星期一 周一", "tue mar die ter tis tir din wto wt di 火 星期二 周二",
		"wed mer mit mie qua woe ons sro sr mi wo 水 星期三 周三", "thu jeu don jue gio qui tor czw do 木 星期四 周四", "fri ven fre vie sex vri pia pt fr vr 金 星期五 周五",
		"sat sam sab zat lor sob sonnabend sa za 土 星期六 周六"}
)

// begins returns the index of the list with the longest prefix of word; -1 if none has one.
func begins(lists []string, word string) int {
	found, longest := -1, 0
	for i, list := range lists {
		for _, b := range strings.Fields(list) {
			if (word == b || len(b) > 2 && strings.HasPrefix(word, b)) && len(b) > longest {
				found, longest = i, len(b)
			}
		}
	}
	return found
}

// readDate parses a text: it returns the date, and the weekday in the text or -1.
func readDate(text string) (date string, weekday int, err error) {
	text = dateAccent.Replace(strings.ToLower(text))
	text = dateSuffix.ReplaceAllString(text, "$1$3")
	text = dateYearFirst.ReplaceAllString(text, "$1 $4.$3.$2 ") // 19年3月5日
	words, numbers := dateWord.FindAllString(text, -1), dateNumber.FindAllString(text, -1)
	month := ""
	if len(numbers) == 2 {
		for i, w := range slices.Backward(words) { // a month is never before the weekday: "mar 5 mar 2019"
			if m := begins(monthBegins, w); m > 0 {
				month = strconv.Itoa(m)
				words = slices.Delete(words, i, i+1)
				break
			}
		}
	}
	weekday = -1
	for _, w := range words {
		if d := begins(weekdayBegins, w); d >= 0 {
			if weekday >= 0 {
				return "", 0, fmt.Errorf("two weekdays in %q", text)
			}
			weekday = d
		}
	}
	var y, m, d string
	switch {
	case len(numbers) == 1 && len(numbers[0]) == 8:
		y, m, d = numbers[0][:4], numbers[0][4:6], numbers[0][6:]
	case len(numbers) == 2 && month != "" && len(numbers[0]) == 4:
		y, m, d = numbers[0], month, numbers[1]
	case len(numbers) == 2 && month != "":
		d, m, y = numbers[0], month, numbers[1]
	case len(numbers) == 3 && len(numbers[0]) == 4:
		y, m, d = numbers[0], numbers[1], numbers[2]
	case len(numbers) == 3:
		d, m, y = numbers[0], numbers[1], numbers[2]
	default:
		return "", 0, fmt.Errorf("no date in %q", text)
	}
	if len(y) == 2 {
		y = map[bool]string{true: "19", false: "20"}[y >= "50"] + y
	}
	return fmt.Sprintf("%s-%02s-%02s", y, m, d), weekday, nil
}

func TestDatesReadBack(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every date")
	}
	weekdays := 0
	for _, p := range Dates(60_000, 1) {
		date, weekday, err := readDate(p.Source)
		if err != nil || date != p.Target {
			t.Fatalf("%q is %s; read as %s, %v", p.Source, p.Target, date, err)
		}
		want, err := time.Parse(time.DateOnly, p.Target)
		if err != nil || want.Year() < 1950 || want.Year() > 2049 {
			t.Fatalf("%q: target %s, %v", p.Source, p.Target, err)
		}
		if weekday >= 0 {
			weekdays++
			if weekday != int(want.Weekday()) {
				t.Fatalf("%q is a %s", p.Source, want.Weekday())
			}
		}
		if n := utf8.RuneCountInString(p.Source); n > 40 || strings.TrimSpace(p.Source) != p.Source || strings.Contains(p.Source, "%") {
			t.Fatalf("%q has %d characters", p.Source, n)
		}
	}
	if weekdays < 15_000 {
		t.Errorf("only %d of 60000 have a weekday", weekdays)
	}
}

func TestDatesAreDifferentAndDeterministic(t *testing.T) {
	pairs := Dates(20_000, 7)
	seen := map[string]bool{}
	for _, p := range pairs {
		if seen[p.Source] {
			t.Fatalf("%q is there twice", p.Source)
		}
		seen[p.Source] = true
	}
	if !reflect.DeepEqual(pairs, Dates(20_000, 7)) || !reflect.DeepEqual(pairs[:99], Dates(99, 7)) {
		t.Error("the same seed gives other pairs")
	}
	if other := Dates(99, 8); reflect.DeepEqual(pairs[:99], other) {
		t.Error("another seed gives the same pairs")
	}
	if got := Dates(0, 1); len(got) != 0 {
		t.Errorf("none wanted, got %q", got)
	}
}

// Results on this task are compared over time, so the pairs of a seed must not change.
func TestDatesStayTheSame(t *testing.T) {
	var got []string
	for _, p := range Dates(4, 1) {
		got = append(got, p.Source+" = "+p.Target)
	}
	want := []string{"28. aug. 2006 = 2006-08-28", "26 september '37 = 2037-09-26", "17 jul. 10 = 2010-07-17", "14.7.14 = 2014-07-14"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDatesSplit(t *testing.T) {
	train, test := DatesSplit(5000, 500, 3)
	if len(train) != 5000 || len(test) != 500 {
		t.Fatalf("%d and %d pairs", len(train), len(test))
	}
	seen := map[string]bool{}
	for _, p := range train {
		seen[p.Source] = true
	}
	for _, p := range test {
		if seen[p.Source] {
			t.Errorf("%q is in both", p.Source)
		}
	}
	if _, same := DatesSplit(10, 500, 3); !reflect.DeepEqual(test, same) {
		t.Error("the test pairs depend on the number of training pairs")
	}
	first := test[len(test)-1]
	if _ = append(test, seq2seq.Pair{}); train[0] == (seq2seq.Pair{}) || test[len(test)-1] != first {
		t.Error("appending to one part changes the other")
	}
}

func TestDatesCoverEverythingEvenly(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: thousands of dates")
	}
	const n = 100_000
	days, months, years := make([]int, 32), make([]int, 13), make([]int, 100)
	for _, p := range Dates(n, 5) {
		var y, m, d int
		if _, err := fmt.Sscanf(p.Target, "%d-%d-%d", &y, &m, &d); err != nil {
			t.Fatal(err)
		}
		days[d]++
		months[m]++
		years[y-1950]++
	}
	even := func(what string, counts []int, slack float64) {
		for i, c := range counts {
			if mean := float64(n) / float64(len(counts)); float64(c) < mean*(1-slack) || float64(c) > mean*(1+slack) {
				t.Errorf("%s %d: %d times, mean %.0f", what, i, c, mean)
			}
		}
	}
	even("month", months[1:], 0.12) // February is 7% below the mean
	even("year", years, 0.2)
	if mean := float64(n) / 30.4; float64(days[29]) < 0.85*mean || float64(days[31]) < 0.5*mean {
		t.Errorf("last days: %v", days[28:])
	}
	for d := 1; d <= 28; d++ {
		if mean := float64(n) / 30.4; float64(days[d]) < 0.9*mean || float64(days[d]) > 1.1*mean {
			t.Errorf("day %d: %d times, mean %.0f", d, days[d], mean)
		}
	}
}

// The lists are typed by hand, so words may be missing; a style with a wrong verb would lose a part of the date.
func TestDateLanguages(t *testing.T) {
	for i, l := range dateLanguages {
		for list, want := range map[string]int{l.weekdays: 7, l.shortWeekdays: 7, l.months: 12, l.shortMonths: 12} {
			words := strings.Fields(list)
			if list == "" && want == 12 && !strings.Contains(strings.ToLower(strings.Join(l.styles, "")), "%m") {
				continue // months are numbers
			}
			if len(words) != want || strings.Contains(list, "||") {
				t.Errorf("language %d: %d words in %q, want %d", i, len(words), list, want)
			}
		}
		for m, long := range strings.Fields(l.months) {
			for _, word := range strings.Split(long+"|"+strings.Fields(l.shortMonths)[m], "|") {
				if got := begins(monthBegins, dateAccent.Replace(strings.ToLower(strings.Trim(word, ".")))); got != m+1 {
					t.Errorf("language %d: %q is month %d, want %d", i, word, got, m+1)
				}
			}
		}
		seen := map[string]bool{}
		for _, style := range l.styles {
			parts := ""
			for at := range len(style) - 1 {
				if style[at] == '%' {
					parts += string(style[at+1])
				}
			}
			day, month, year := strings.Count(parts, "d")+strings.Count(parts, "D")+strings.Count(parts, "o"),
				strings.Count(parts, "n")+strings.Count(parts, "N")+strings.Count(parts, "m")+strings.Count(parts, "M"),
				strings.Count(parts, "y")+strings.Count(parts, "Y")
			if day != 1 || month != 1 || year != 1 || strings.Trim(parts, "dDonNmMyYwW") != "" || seen[style] {
				t.Errorf("language %d: style %q", i, style)
			}
			if strings.Contains(parts, "o") && l.ordinal == nil {
				t.Errorf("language %d has no ordinals for %q", i, style)
			}
			seen[style] = true
		}
	}
}

func TestOrdinals(t *testing.T) {
	for day, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 20: "20th", 21: "21st", 22: "22nd", 23: "23rd", 30: "30th", 31: "31st"} {
		if got := englishOrdinal(day); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDatesPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"negative":       func() { Dates(-1, 0) },
		"too many":       func() { Dates(MaxDates+1, 0) },
		"negative train": func() { DatesSplit(-1, 5, 0) },
		"negative test":  func() { DatesSplit(5, -1, 0) },
		"too many both":  func() { DatesSplit(MaxDates, 1, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
