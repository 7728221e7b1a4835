package seq2seq

// ParseVocabulary returns the vocabulary in the text of a file, as MarshalJSON writes it.
func ParseVocabulary(data []byte) (*Vocabulary, error) {
	v := new(Vocabulary)
	return v, v.read(data)
}
