//! A tokenizer as tranship uses it: no settings of its own, everything by call.

use serde_json::json;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::tokenizer::{PostProcessor, TruncationDirection};
use tokenizers::{AddedToken, DecoderWrapper, Encoding, ModelWrapper, NormalizerWrapper};

use crate::Outcome;

const SPACE_MARK: char = '\u{2581}';

/// Where a tokenizer of Llama's kind puts a space of its own.
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
pub enum Prepend {
    Never,
    First,
    Always,
}

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    padding: serde_json::Value,
    truncation: serde_json::Value,
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Tokenizer {
    /// Reads a tokenizer.json. Its padding and truncation are remembered for `describe` and switched off.
    pub fn new(json: &[u8]) -> Outcome<Self> {
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(text_of)?;
        let padding = serde_json::to_value(inner.get_padding()).map_err(text_of)?;
        let truncation = serde_json::to_value(inner.get_truncation()).map_err(text_of)?;
        inner.with_padding(None).with_truncation(None).map_err(text_of)?;
        Ok(Self { inner, padding, truncation })
    }

    /// {"model": "BPE", "vocab_size", "decoder", "padding", "truncation", "added_tokens": ["<s>", ...]}:
    /// null where the file says nothing; the objects are the file's own.
    pub fn describe(&self) -> Outcome<String> {
        let model = match self.inner.get_model() {
            ModelWrapper::BPE(_) => "BPE",
            ModelWrapper::WordPiece(_) => "WordPiece",
            ModelWrapper::WordLevel(_) => "WordLevel",
            ModelWrapper::Unigram(_) => "Unigram",
        };
        let decoder: Option<&DecoderWrapper> = self.inner.get_decoder();
        let mut added: Vec<_> = self.inner.get_added_tokens_decoder().into_iter().collect();
        added.sort_by_key(|(id, _)| *id);
        let added: Vec<_> = added.into_iter().map(|(_, token)| token.content).collect();
        let description = json!({
            "model": model,
            "vocab_size": self.inner.get_vocab_size(true),
            "decoder": serde_json::to_value(decoder).map_err(text_of)?,
            "padding": self.padding,
            "truncation": self.truncation,
            "added_tokens": added,
        });
        Ok(description.to_string())
    }

    /// Replaces what the file says by the steps that Transformers' LlamaTokenizer builds around the
    /// vocabulary: spaces become U+2581, one is put in front, unknown characters become their bytes.
    /// A model other than BPE is left alone.
    pub fn use_llama_steps(&mut self, prepend: Prepend) -> Outcome<()> {
        let ModelWrapper::BPE(model) = self.inner.get_model() else { return Ok(()) };
        let mut model = model.clone();
        model.fuse_unk = true;
        model.byte_fallback = true;
        model.unk_token = None;
        model.dropout = None;
        let mut decoders = vec![
            json!({"type": "Replace", "pattern": {"String": SPACE_MARK}, "content": " "}),
            json!({"type": "ByteFallback"}),
            json!({"type": "Fuse"}),
        ];
        if prepend != Prepend::Never {
            decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        let decoder = json!({"type": "Sequence", "decoders": decoders});
        let decoder: DecoderWrapper = serde_json::from_value(decoder).map_err(text_of)?;
        let scheme = match prepend {
            Prepend::Never => PrependScheme::Never,
            Prepend::First => PrependScheme::First,
            Prepend::Always => PrependScheme::Always,
        };
        self.inner
            .with_model(model)
            .with_normalizer(None::<NormalizerWrapper>)
            .with_pre_tokenizer(Some(Metaspace::new(SPACE_MARK, scheme, false)))
            .with_decoder(Some(decoder))
            .add_tokens(&[]); // so that added tokens are matched without the old normalizer
        Ok(())
    }

    pub fn add_tokens(&mut self, json: &[u8]) -> Outcome<()> {
        let tokens: Vec<AddedToken> = serde_json::from_slice(json).map_err(text_of)?;
        self.inner.add_tokens(&tokens);
        Ok(())
    }

    pub fn split_special_tokens(&mut self, yes: bool) {
        self.inner.set_encode_special_tokens(yes);
    }

    /// -> (ids, type ids), at most `max_length` of each with the special ones.
    pub fn encode(
        &self,
        text: &str,
        add_special_tokens: bool,
        max_length: usize,
        truncate_left: bool,
    ) -> Outcome<(Vec<u32>, Vec<u32>)> {
        let plain = self.inner.encode_fast(text, add_special_tokens).map_err(text_of)?;
        if plain.len() <= max_length {
            return Ok((plain.get_ids().to_vec(), plain.get_type_ids().to_vec()));
        }
        let cut = self.encode_cut(text, add_special_tokens, max_length, truncate_left)?;
        Ok((cut.get_ids().to_vec(), cut.get_type_ids().to_vec()))
    }

    /// The text's tokens are cut so that the special ones still fit, then these are added.
    fn encode_cut(
        &self,
        text: &str,
        add_special_tokens: bool,
        max_length: usize,
        truncate_left: bool,
    ) -> Outcome<Encoding> {
        let processor = self.inner.get_post_processor().filter(|_| add_special_tokens);
        let num_special = processor.map_or(0, |p| p.added_tokens(false));
        let Some(room) = max_length.checked_sub(num_special) else {
            return Err(format!(
                "a maximum of {max_length} ids does not hold the {num_special} special ones"
            ));
        };
        let direction = if truncate_left { TruncationDirection::Left } else { TruncationDirection::Right };
        let mut encoding = self.inner.encode_fast(text, false).map_err(text_of)?;
        encoding.truncate(room, 0, direction);
        match processor {
            Some(p) => p.process(encoding, None, true).map_err(text_of),
            None => Ok(encoding),
        }
    }

    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Outcome<String> {
        self.inner.decode(ids, skip_special_tokens).map_err(text_of)
    }

    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// -> (the token, whether it is special).
    pub fn id_to_token(&self, id: u32) -> Option<(String, bool)> {
        let token = self.inner.id_to_token(id)?;
        let special = self.inner.get_added_vocabulary().is_special_token(&token);
        Some((token, special))
    }
}
