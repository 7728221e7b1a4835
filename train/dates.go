package train

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/seq2seq"
)

// MaxDates is the largest number of pairs that Dates makes. It is a small fraction of all possible pairs.
const MaxDates = 1_000_000

// dateEpoch and dateCount span the years 1950 to 2049, so that two digits identify a year.
var dateEpoch = time.Date(1950, time.January, 1, 0, 0, 0, 0, time.UTC)

const dateCount = 36525

// Dates makes n pairs of a date as people write it and the same date in the form 2019-03-05. This task takes minutes to
// learn, and it is obvious which characters the model should attend to. All source texts are different, and each
// determines its date: years are 1950 to 2049; two digits from 50 mean 19.., others 20..; in dates of numbers only, the
// year comes first if the first number has four digits or 年 follows it, otherwise the day does. Weekdays are correct.
// Twelve languages and all days of these years are equally likely. The same n and seed give the same pairs, and a smaller n
// gives a prefix of them.
//
// Panics: n < 0 or n > MaxDates.
func Dates(n int, seed uint64) []seq2seq.Pair {
	if n < 0 || n > MaxDates {
		panic(fmt.Sprintf("train: Dates: %d pairs, want 0 to %d", n, MaxDates))
	}
	rng := dateRand(seed)
	pairs := make([]seq2seq.Pair, 0, n)
	seen := make(map[string]bool, n)
	for len(pairs) < n {
		date := dateEpoch.AddDate(0, 0, rng.below(dateCount))
		l := &dateLanguages[rng.below(len(dateLanguages))]
		source := l.write(date, &rng)
		if !seen[source] {
			seen[source] = true
			pairs = append(pairs, seq2seq.Pair{Source: source, Target: date.Format(time.DateOnly)})
		}
	}
	return pairs
}

// DatesSplit makes training pairs and test pairs like Dates; no source is in both. The test pairs depend only on
// their number and the seed, so that models trained on different numbers of pairs can be compared.
//
// Panics: a negative number, or more than MaxDates in all.
func DatesSplit(train, test int, seed uint64) (trainPairs, testPairs []seq2seq.Pair) {
	if train < 0 || test < 0 {
		panic(fmt.Sprintf("train: DatesSplit: %d and %d pairs, want 0 or more", train, test))
	}
	all := Dates(train+test, seed)
	return all[test:], all[:test:test]
}

// dateRand is the splitmix64 generator. It is implemented here, and not taken from a library, so that the pairs of a seed
// never change and results stay comparable.
type dateRand uint64

func (r *dateRand) below(n int) int {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	high, _ := bits.Mul64(z^z>>31, uint64(n))
	return int(high)
}

func (r *dateRand) oneOf(list []string) string { return list[r.below(len(list))] }

// dateLanguage describes how a language writes dates. Lists have one word per month or weekday, Sunday first, separated by
// spaces; a bar separates synonyms. Styles contain these verbs:
//
//	%W %w  weekday, in full and short       %d %D  day as 5 and as 05      %n %N  month as 3 and as 03
//	%M %m  month, in full and short         %o     day as ordinal          %Y %y  year as 2019 and as 19
type dateLanguage struct {
	weekdays, shortWeekdays string
	months, shortMonths     string
	styles                  []string
	ordinal                 func(day int) string // nil if the language uses only numbers
}

// write writes a date in a style of the language, mostly with its usual capitals.
func (l *dateLanguage) write(date time.Time, rng *dateRand) string {
	entry := func(list string, i int) string { return rng.oneOf(strings.Split(strings.Fields(list)[i], "|")) }
	style := rng.oneOf(l.styles)
	if !strings.Contains(style, "%M") && !strings.Contains(style, "%m") {
		style = rng.oneOf(l.styles) // dates of numbers only teach the least, so they must be drawn twice
	}
	var out strings.Builder
	for i := 0; i < len(style); i++ {
		if style[i] != '%' {
			out.WriteByte(style[i])
			continue
		}
		i++
		switch style[i] {
		case 'W':
			out.WriteString(entry(l.weekdays, int(date.Weekday())))
		case 'w':
			out.WriteString(entry(l.shortWeekdays, int(date.Weekday())))
		case 'M':
			out.WriteString(entry(l.months, int(date.Month())-1))
		case 'm':
			out.WriteString(entry(l.shortMonths, int(date.Month())-1))
		case 'o':
			out.WriteString(l.ordinal(date.Day()))
		default:
			out.WriteString(date.Format(dateLayouts[style[i]]))
		}
	}
	switch text := out.String(); rng.below(10) {
	case 0:
		return strings.ToUpper(text)
	case 1, 2, 3:
		return strings.ToLower(text)
	case 4:
		first, n := utf8.DecodeRuneInString(text)
		return string(unicode.ToUpper(first)) + text[n:]
	default:
		return text
	}
}

// dateLayouts are the layouts of package time for the verbs of numbers.
var dateLayouts = map[byte]string{'d': "2", 'D': "02", 'n': "1", 'N': "01", 'Y': "2006", 'y': "06"}

func englishOrdinal(day int) string {
	suffix := "th"
	if day/10 != 1 {
		switch day % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(day) + suffix
}

// firstOnly is for languages with an ordinal for the first day of a month and plain numbers for other days.
func firstOnly(first string) func(int) string {
	return func(day int) string {
		if day == 1 {
			return first
		}
		return strconv.Itoa(day)
	}
}

var dateLanguages = []dateLanguage{
	{ // English
		weekdays:      "Sunday Monday Tuesday Wednesday Thursday Friday Saturday",
		shortWeekdays: "Sun|Sun. Mon|Mon. Tue|Tues Wed|Wed. Thu|Thurs Fri|Fri. Sat|Sat.",
		months:        "January February March April May June July August September October November December",
		shortMonths:   "Jan|Jan. Feb|Feb. Mar|Mar. Apr|Apr. May Jun|Jun. Jul|Jul. Aug|Aug. Sep|Sept|Sep. Oct|Oct. Nov|Nov. Dec|Dec.",
		ordinal:       englishOrdinal,
		styles: []string{"%W %d %M %Y", "%W, %d %M %Y", "%W, %M %d, %Y", "%M %d, %Y", "%M %o, %Y", "%o of %M %Y", "the %o of %M, %Y",
			"%W the %o of %M %Y", "%W, %M %o %Y", "%d %M %Y", "%d %m %Y", "%d %m %y", "%m %d, %Y", "%m %d '%y", "%w %d %m %Y", "%w, %m %d, %Y",
			"%d-%m-%Y", "%D-%m-%y", "%D%m%Y", "%Y %M %d", "%Y-%m-%D", "%D/%N/%Y", "%d/%n/%y", "%w %D/%N/%Y", "%Y/%N/%D", "%Y-%N-%D", "%Y%N%D"},
	},
	{ // French
		weekdays:      "dimanche lundi mardi mercredi jeudi vendredi samedi",
		shortWeekdays: "dim.|dim lun.|lun mar.|mar mer.|mer jeu.|jeu ven.|ven sam.|sam",
		months:        "janvier février|fevrier mars avril mai juin juillet août|aout septembre octobre novembre décembre|decembre",
		shortMonths:   "janv.|janv|jan févr.|fév|fev mars avr.|avr mai juin juil.|juil août|aout sept.|sept oct.|oct nov.|nov déc.|déc|dec",
		ordinal:       firstOnly("1er"),
		styles: []string{"%W %o %M %Y", "le %o %M %Y", "le %W %o %M %Y", "%W, le %o %M %Y", "%o %M %Y", "%o %M %y", "%o %m %Y", "%o %m %y", "%w %o %m %Y",
			"%D/%N/%Y", "%d/%n/%Y", "%D/%N/%y", "%d/%n/%y", "%D.%N.%Y", "%W %D/%N/%Y", "le %d/%n/%Y", "%Y-%N-%D"},
	},
	{ // German
		weekdays:      "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag|Sonnabend",
		shortWeekdays: "So|So. Mo|Mo. Di|Di. Mi|Mi. Do|Do. Fr|Fr. Sa|Sa.",
		months:        "Januar|Jänner Februar März|Maerz April Mai Juni Juli August September Oktober November Dezember",
		shortMonths:   "Jan.|Jan Feb.|Feb März|Mrz Apr.|Apr Mai Juni|Jun Juli|Jul Aug.|Aug Sept.|Sep Okt.|Okt Nov.|Nov Dez.|Dez",
		styles: []string{"%W, %d. %M %Y", "%W, den %d. %M %Y", "%W, der %d. %M %Y", "am %d. %M %Y", "%d. %M %Y", "%d. %M %y", "%d. %m %Y", "%d. %m %y",
			"%w, %d. %m %Y", "%w, %D.%N.%Y", "%W, %d.%n.%Y", "%D.%N.%Y", "%d.%n.%Y", "%D.%N.%y", "%d.%n.%y", "%d. %n. %Y", "%Y-%N-%D"},
	},
	{ // Spanish
		weekdays:      "domingo lunes martes miércoles|miercoles jueves viernes sábado|sabado",
		shortWeekdays: "dom.|dom lun.|lun mar.|mar mié.|mié jue.|jue vie.|vie sáb.|sáb",
		months:        "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
		shortMonths:   "ene.|ene feb.|feb mar.|mar abr.|abr may.|may jun.|jun jul.|jul ago.|ago sept.|sep oct.|oct nov.|nov dic.|dic",
		styles: []string{"%W, %d de %M de %Y", "%W %d de %M de %Y", "%d de %M de %Y", "el %d de %M de %Y", "%d de %M del %Y", "%d %M %Y", "%d de %m de %Y",
			"%d %m %Y", "%d %m %y", "%w %d %m %Y", "%w, %d de %M de %Y", "%D/%N/%Y", "%d/%n/%Y", "%D/%N/%y", "%d/%n/%y", "%w %d/%n/%Y", "%D.%N.%Y"},
	},
	{ // Italian
		weekdays:      "domenica lunedì|lunedi martedì|martedi mercoledì|mercoledi giovedì|giovedi venerdì|venerdi sabato",
		shortWeekdays: "dom|dom. lun|lun. mar|mar. mer|mer. gio|gio. ven|ven. sab|sab.",
		months:        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
		shortMonths:   "gen|gen. feb|feb. mar|mar. apr|apr. mag|mag. giu|giu. lug|lug. ago|ago. set|set. ott|ott. nov|nov. dic|dic.",
		ordinal:       firstOnly("1º"),
		styles: []string{"%W %o %M %Y", "%W, %d %M %Y", "%o %M %Y", "%d %M %Y", "%d %M '%y", "%d %m %Y", "%d %m %y", "%w %d %m %Y",
			"%D/%N/%Y", "%d/%n/%Y", "%D/%N/%y", "%d/%n/%y", "%D.%N.%Y", "%w %D/%N/%Y", "%Y/%N/%D"},
	},
	{ // Portuguese
		weekdays:      "domingo segunda-feira|segunda terça-feira|terça quarta-feira|quarta quinta-feira|quinta sexta-feira|sexta sábado",
		shortWeekdays: "dom.|dom seg.|seg ter.|ter qua.|qua qui.|qui sex.|sex sáb.|sáb",
		months:        "janeiro fevereiro março|marco abril maio junho julho agosto setembro outubro novembro dezembro",
		shortMonths:   "jan.|jan fev.|fev mar.|mar abr.|abr mai.|mai jun.|jun jul.|jul ago.|ago set.|set out.|out nov.|nov dez.|dez",
		ordinal:       firstOnly("1º"),
		styles: []string{"%W, %o de %M de %Y", "%o de %M de %Y", "%d de %M de %Y", "%W %d de %M de %Y", "%d de %m de %Y", "%d %m %Y", "%d/%m/%Y", "%d %m %y",
			"%w, %d de %M de %Y", "%w %d %m %Y", "%D/%N/%Y", "%d/%n/%Y", "%D/%N/%y", "%d/%n/%y", "%w, %D/%N/%Y"},
	},
	{ // Dutch
		weekdays:      "zondag maandag dinsdag woensdag donderdag vrijdag zaterdag",
		shortWeekdays: "zo ma di wo do vr za",
		months:        "januari februari maart april mei juni juli augustus september oktober november december",
		shortMonths:   "jan.|jan feb.|feb mrt.|mrt apr.|apr mei jun.|jun jul.|jul aug.|aug sep.|sept okt.|okt nov.|nov dec.|dec",
		styles: []string{"%W %d %M %Y", "%W, %d %M %Y", "%d %M %Y", "%d %M '%y", "%d %m %Y", "%d %m %y", "%w %d %m %Y", "%w %d %M %Y",
			"%D-%N-%Y", "%d-%n-%Y", "%w %D-%N-%Y", "%d/%n/%Y", "%D/%N/%y", "%d.%n.%y"},
	},
	{ // Swedish
		weekdays:      "söndag måndag tisdag onsdag torsdag fredag lördag",
		shortWeekdays: "sön mån tis ons tors|tor fre lör",
		months:        "januari februari mars april maj juni juli augusti september oktober november december",
		shortMonths:   "jan.|jan feb.|feb mars apr.|apr maj juni juli aug.|aug sep.|sept okt.|okt nov.|nov dec.|dec",
		styles: []string{"%W %d %M %Y", "%Wen den %d %M %Y", "den %d %M %Y", "%d %M %Y", "%d %m %Y", "%d %m %y", "%w %d %m %Y", "%w %d %M %Y",
			"%d/%n %Y", "%d/%n/%y", "%w %d/%n %Y", "%Y-%N-%D", "%w %Y-%N-%D"},
	},
	{ // Danish
		weekdays:      "søndag mandag tirsdag onsdag torsdag fredag lørdag",
		shortWeekdays: "søn. man. tirs.|tir. ons. tors.|tor. fre. lør.",
		months:        "januar februar marts april maj juni juli august september oktober november december",
		shortMonths:   "jan. feb. mar. apr. maj jun. jul. aug. sep.|sept. okt. nov. dec.",
		styles: []string{"%W den %d. %M %Y", "%W d. %d. %M %Y", "den %d. %M %Y", "d. %d. %M %Y", "%d. %M %Y", "%d. %m %Y", "%d. %m %y", "%w %d. %m %Y",
			"%D.%N.%Y", "%d.%n.%y", "%d/%n %Y", "%D/%N/%Y", "%w %d/%n %Y"},
	},
	{ // Polish
		weekdays:      "niedziela poniedziałek wtorek środa czwartek piątek sobota",
		shortWeekdays: "niedz.|nd. pon. wt. śr. czw. pt. sob.",
		months:        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
		shortMonths:   "sty lut mar kwi maj cze lip sie wrz paź lis gru",
		styles: []string{"%W, %d %M %Y", "%W, %d %M %Y r.", "%d %M %Y", "%d %M %Y r.", "dnia %d %M %Y", "%d %m %Y", "%d %m %y", "%w, %d %m %Y",
			"%w %D.%N.%Y", "%D.%N.%Y", "%d.%n.%Y", "%D.%N.%Y r.", "%d.%n.%y", "%Y.%N.%D"},
	},
	{ // Chinese
		weekdays:      "星期日|星期天 星期一 星期二 星期三 星期四 星期五 星期六",
		shortWeekdays: "周日 周一 周二 周三 周四 周五 周六",
		styles: []string{"%Y年%n月%d日", "%Y年%n月%d日 %W", "%Y年%n月%d日%W", "%Y年%n月%d日（%W）", "%W，%Y年%n月%d日", "%Y年%n月%d日 %w", "%Y年%N月%D日",
			"%Y年%n月%d号", "%Y 年 %n 月 %d 日", "%y年%n月%d日", "%Y/%n/%d", "%Y.%n.%d", "%Y-%n-%d"},
	},
	{ // Japanese
		weekdays:      "日曜日 月曜日 火曜日 水曜日 木曜日 金曜日 土曜日",
		shortWeekdays: "日 月 火 水 木 金 土",
		styles: []string{"%Y年%n月%d日", "%Y年%n月%d日 %W", "%Y年%n月%d日%W", "%Y年%n月%d日（%W）", "%Y年%n月%d日(%w)", "%Y年%n月%d日（%w）", "%Y年%N月%D日",
			"%Y年%N月%D日(%w)", "%y年%n月%d日", "%Y/%n/%d", "%Y/%N/%D(%w)", "%y年%n月%d日(%w)"},
	},
}
